package main

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/examples/internal/kernel/kerneltest"
	"github.com/onesided/rma/internal/jobtest"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

var small = kerneltest.Register("small", (&job{reads: 1000, words: 70, together: 300}).run)

func TestIndexGather(t *testing.T) { kerneltest.Run(t, small) }

func TestCommand(t *testing.T) {
	var out, errout bytes.Buffer
	require.Zero(t, newKernel().Command(t.Context(), []string{"-ranks", "3", "-n", "1000"}, &out, &errout), "%s", errout.String())
	require.Regexp(t, `^rate +[0-9.e+-]+ Mop/s\nwrong +0 of 3000\n$`, out.String())
}

func Example() {
	var out bytes.Buffer
	fmt.Print(newKernel().Command(context.Background(), []string{"-n", "100", "-T", "0"}, &out, &out), " ", out.String())
	// Output:
	// 2 indexgather: wrong usage: invalid value "0" for flag -T: must be a number from 1 to 17179869184
	// indexgather -h explains the usage
}

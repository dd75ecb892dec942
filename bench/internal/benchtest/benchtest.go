package benchtest

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
)

// Trial is the flag for loops that are as short as tests want them. Their values mean nothing.
func Trial() string { return fmt.Sprintf("-shorten=%d", max(1000/testsize.N(1), 1)) }

// SomeOf returns one of all in a plain run, and another with another seed. A run that is larger has more.
func SomeOf[T any](all ...T) []T {
	var some []T
	for _, i := range testsize.Turns(0, len(all), 1) {
		some = append(some, all[i])
	}
	return some
}

// OnlyVirtual skips a test of virtual time in a plain run with the race detector, under which such tests take minutes.
func OnlyVirtual(t *testing.T) {
	t.Helper()
	if testsize.Race && testsize.N(1) == 1 {
		t.Skip("skipped: the simulator has one rank run at a time, so that the race detector has nothing to find; RMA_TEST_SIZE=2 runs it")
	}
}

// NeedProcesses skips a test where ranks cannot be processes.
func NeedProcesses(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skipf("skipped: ranks as processes need linux, this is %s", runtime.GOOS)
	}
}

// Script is a program of these lines of sh.
func Script(t *testing.T, file, lines string) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("skipped: there is no sh")
	}
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+lines+"\n"), 0o777))
}

// CheckXML checks that a text is well-formed XML.
func CheckXML(t *testing.T, text string) {
	t.Helper()
	decoder := xml.NewDecoder(strings.NewReader(text))
	for {
		_, err := decoder.Token()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
	}
}

// Recorded returns the text of a file of testdata.
func Recorded(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(text)
}

package main

import (
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the recorded tables")

// golden checks that a file has the text got. With -rewrite it writes the file before.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got)
}

// trial is the flag for loops that are as short as tests want them. Their values mean nothing.
func trial() string { return fmt.Sprintf("-shorten=%d", max(1000/testsize.N(1), 1)) }

// someOf returns one of all in a plain run, and another with another seed. A run that is larger has more.
func someOf[T any](all ...T) []T {
	var some []T
	for _, i := range testsize.Turns(0, len(all), 1) {
		some = append(some, all[i])
	}
	return some
}

// onlyVirtual skips a test of virtual time in a plain run with the race detector, under which such tests take minutes.
func onlyVirtual(t *testing.T) {
	t.Helper()
	if testsize.Race && testsize.N(1) == 1 {
		t.Skip("skipped: the simulator has one rank run at a time, so that the race detector has nothing to find; RMA_TEST_SIZE=2 runs it")
	}
}

// needProcesses skips a test where ranks cannot be processes.
func needProcesses(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skipf("skipped: ranks as processes need linux, this is %s", runtime.GOOS)
	}
}

// script is a program of these lines of sh.
func script(t *testing.T, file, lines string) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("skipped: there is no sh")
	}
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+lines+"\n"), 0o777))
}

// wellFormed checks that a text is well-formed XML.
func wellFormed(t *testing.T, text string) {
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

// recorded returns the text of a file of testdata.
func recorded(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(text)
}

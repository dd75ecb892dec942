package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// served runs body while counters are served at an address.
func served(t testing.TB, counters string, body func(address string)) {
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	var running sync.WaitGroup
	var errout bytes.Buffer
	status := 0
	running.Go(func() {
		status = command(ctx, []string{"-nokey", "-serve", "127.0.0.1:0", "-counters", counters}, writer, &errout)
		_ = writer.CloseWithError(errors.New("it has ended"))
	})
	line := make([]byte, 100)
	n, err := reader.Read(line)
	require.NoError(t, err, "%s", errout.String())
	fields := strings.Fields(string(line[:n]))
	body(fields[len(fields)-1])
	cancel()
	running.Wait()
	require.Zero(t, status, "%s", errout.String())
}

func TestCounters(t *testing.T) {
	served(t, "8", func(address string) {
		var running sync.WaitGroup
		for range 8 {
			running.Go(func() {
				var out, errout bytes.Buffer
				if command(t.Context(), []string{"-nokey", "-at", address, "3=40", "5=-1", "3=2"}, &out, &errout) != 0 {
					t.Error(errout.String())
				}
			})
		}
		running.Wait()
		var out, errout bytes.Buffer
		require.Zero(t, command(t.Context(), []string{"-nokey", "-at", address, "3=0", "5=0", "7=0"}, &out, &errout))
		require.Equal(t, "3 336\n5 -8\n7 0\n", out.String())
		out.Reset()
		require.Equal(t, 1, command(t.Context(), []string{"-nokey", "-at", address, "7=1", "8=1"}, &out, &errout))
		require.Equal(t, "counters: there is no counter 8: allowed are 0 to 7\n", errout.String())
		require.Zero(t, command(t.Context(), []string{"-nokey", "-at", address, "7=0"}, &out, &errout))
		require.Equal(t, "7 0\n", out.String())
	})
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		args  []string
		wrong string
	}{
		{nil, "either -serve or -at is needed"},
		{[]string{"-serve", "a:1", "-at", "b:1"}, "-serve or -at, not both"},
		{[]string{"-serve", "a:1", "1=1"}, "-serve takes no arguments"},
		{[]string{"-serve", "a:1", "-clients", "0"}, "-clients 0: must be a number from 1 to 4096"},
		{[]string{"-serve", "a:1", "-clients", "4097"}, "-clients 4097: must be a number from 1 to 4096"},
		{[]string{"-serve", "a:1", "-counters", "0"}, "-counters 0: must be 1 or more"},
		{[]string{"-at", "b:1"}, "no INDEX=NUMBER"},
		{[]string{"-at", "b:1", "x"}, `"x" is no INDEX=NUMBER, of an index from 0 and a number from -9223372036854775808 to 9223372036854775807`},
		{[]string{"-at", "b:1", "1=x"}, `"1=x" is no INDEX=NUMBER, of an index from 0 and a number from -9223372036854775808 to 9223372036854775807`},
		{[]string{"-at", "b:1", "-1=1"}, "flag provided but not defined: -1"},
		{[]string{"-at", "b:1", "1=1", "-1=1"}, `"-1=1" is no INDEX=NUMBER, of an index from 0 and a number from -9223372036854775808 to 9223372036854775807`},
		{[]string{"-x"}, "flag provided but not defined: -x"},
	} {
		var out, errout bytes.Buffer
		require.Equal(t, 2, command(t.Context(), c.args, &out, &errout), "%q", c.args)
		require.Equal(t, "counters: wrong usage: "+c.wrong+"\ncounters -h explains the usage\n", errout.String())
	}
	var out, errout bytes.Buffer
	require.Zero(t, command(t.Context(), []string{"-h"}, &out, &errout))
	for _, says := range []string{"RMA_SERVE_KEY_FILE", "-nokey", "negative", "INDEX=0", "-clients n", "1 to 4096", "exit status: 0"} {
		require.Contains(t, errout.String(), says)
	}
	require.Equal(t, 1, command(t.Context(), []string{"-nokey", "-at", "127.0.0.1:1", "1=1"}, &out, &errout))
	errout.Reset()
	require.Equal(t, 1, command(t.Context(), []string{"-at", "127.0.0.1:1", "1=1"}, &out, &errout))
	require.Contains(t, errout.String(), "set RMA_SERVE_KEY_FILE")
}

func Example() {
	fmt.Println(command(context.Background(), []string{"-h"}, io.Discard, io.Discard))
	// Output: 0
}

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
		status = command(ctx, []string{"-serve", "127.0.0.1:0", "-counters", counters}, writer, &errout)
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
				if command(t.Context(), []string{"-at", address, "3=40", "5=-1", "3=2"}, &out, &errout) != 0 {
					t.Error(errout.String())
				}
			})
		}
		running.Wait()
		var out, errout bytes.Buffer
		require.Zero(t, command(t.Context(), []string{"-at", address, "3=0", "5=0", "7=0"}, &out, &errout))
		require.Equal(t, "3 336\n5 -8\n7 0\n", out.String())
		require.Equal(t, 1, command(t.Context(), []string{"-at", address, "8=1"}, &out, &errout))
		require.Contains(t, errout.String(), "it has 8 elements")
	})
}

func TestRefused(t *testing.T) {
	for _, args := range [][]string{{}, {"-serve", "a:1", "-at", "b:1"}, {"-serve", "a:1", "1=1"}, {"-serve", "a:1", "-clients", "0"},
		{"-at", "b:1"}, {"-at", "b:1", "x"}, {"-at", "b:1", "1=x"}, {"-at", "b:1", "-1=1"}, {"-x"}} {
		var out, errout bytes.Buffer
		require.Equal(t, 2, command(t.Context(), args, &out, &errout), "%q", args)
		require.NotEmpty(t, errout.String())
	}
	var out, errout bytes.Buffer
	require.Zero(t, command(t.Context(), []string{"-h"}, &out, &errout))
	require.Contains(t, errout.String(), "RMA_KEY_FILE")
	require.Equal(t, 1, command(t.Context(), []string{"-at", "127.0.0.1:1", "1=1"}, &out, &errout))
}

func Example() {
	fmt.Println(command(context.Background(), []string{"-h"}, io.Discard, io.Discard))
	// Output: 0
}

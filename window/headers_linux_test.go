package window_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// sentByTCP returns how many bytes the TCP sockets of this process have sent.
func sentByTCP() (sent uint64, err error) {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		fd, err := strconv.Atoi(file.Name())
		if err != nil {
			return 0, err
		}
		// Others are no sockets of TCP, or are closed by now.
		if info, err := unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO); err == nil {
			sent += info.Bytes_sent
		}
	}
	return sent, nil
}

// A put or accumulate of 8 bytes over TCP carries at most 72 bytes of headers, frame, stamp, message and packet together,
// without TCP and IP. The response to its flush has at most 40.
func TestHeaderBytes(t *testing.T) {
	const times, data, most = 1000, 8, 8 + 72 + 40
	calls := map[string]func(win *window.Window[int64]) error{
		"Put":        func(win *window.Window[int64]) error { return win.Put([]int64{1}, 1, 0) },
		"Accumulate": func(win *window.Window[int64]) error { return win.Accumulate(window.Sum, []int64{1}, 1, 0) },
	}
	for name, call := range calls {
		require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
			win, err := window.Allocate[int64](ctx, w, 1)
			if err != nil {
				return err
			}
			if err := win.LockAll(ctx, window.NoCheck); err != nil {
				return err
			}
			var before, after uint64
			for i := 0; w.Rank() == 0 && i <= times; i++ {
				if err := errors.Join(call(win), win.Flush(ctx, 1)); err != nil {
					return err
				}
				if i == 0 {
					// Connections are made by now.
					if before, err = sentByTCP(); err != nil {
						return err
					}
				}
			}
			if w.Rank() == 0 {
				if after, err = sentByTCP(); err != nil {
					return err
				}
				// The quotient leaves out a few frames of other kinds.
				each := (after - before) / times
				t.Logf("%d bytes for %s of %d, its flush and the response", each, name, data)
				if each > most {
					return fmt.Errorf("%d bytes for %s of %d, its flush and the response, want at most %d", each, name, data, most)
				}
			}
			return errors.Join(win.UnlockAll(ctx), win.Close())
		}, world.WithDevice("tcp")))
	}
}

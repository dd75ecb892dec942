package job_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A routeless device ignores the address that it is asked for, and connects to one to which this host has no route.
type routeless struct{ verbs.Device }

func (d routeless) Connect(address string, hello []byte, config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	// The address is that of a multicast group, to which TCP cannot connect.
	_, id, _ := strings.Cut(address, "/")
	return d.Device.Connect("224.0.0.1:7/"+id, hello, config)
}

// A logged is a log that several ranks write.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// For a rank that has no route to another, that other rank has failed. Its call ends with an error that says so, and its World closes.
func TestNoRoute(t *testing.T) {
	t.Parallel()
	for name, wanting := range map[string]func(ctx context.Context, w *world.World) error{
		"Barrier": func(ctx context.Context, w *world.World) error { return w.Barrier(ctx) },
		"Allocate": func(ctx context.Context, w *world.World) error {
			_, err := window.Allocate[int64](ctx, w, 1)
			return err
		},
		"Close": func(context.Context, *world.World) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
			defer cancel()
			var log logged
			network := func(int) (verbs.Device, error) {
				device, err := tcp.Open(tcp.Options{HandshakeLimit: 2 * time.Second})
				return routeless{device}, err
			}
			err := world.Run(ctx, 2, func(ctx context.Context, w *world.World) error {
				err := wanting(ctx, w)
				var lost *world.PeerError
				if name != "Close" && (!errors.As(err, &lost) || lost.Rank != 1-w.Rank() || !errors.Is(err, syscall.ENETUNREACH) || strings.Contains(err.Error(), "peer is gone") || !strings.Contains(err.Error(), "no route")) {
					return fmt.Errorf("rank %d: %s gives %w", w.Rank(), name, err)
				}
				if err := w.CloseContext(ctx); ctx.Err() != nil {
					return fmt.Errorf("rank %d: Close does not end: %w", w.Rank(), err)
				}
				return nil
			}, world.WithDevice("tcp"), world.WithNetwork(network), world.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			require.NoError(t, err)
			log.mu.Lock()
			defer log.mu.Unlock()
			require.NotContains(t, log.text.String(), "cannot connect")
		})
	}
}

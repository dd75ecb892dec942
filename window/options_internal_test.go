package window

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/hint"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/world"
)

// A window has the schemes that neither the tuning of its job nor a hint of its own leaves out. A client's window has those that
// the tuning of the client does not leave out.
func TestSchemesLeftOut(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	leaving := func(schemes scheduler.Scheme) world.Option {
		return job.Tune(func(t *tuning.Tuning) { t.NoSchemes = schemes })
	}
	l, err := world.Listen(ctx, "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	defer l.Close()
	require.NoError(t, world.Run(ctx, 1, func(ctx context.Context, w *world.World) error {
		plain, err := Allocate[int64](ctx, w, 1, Seats(1))
		if err != nil {
			return err
		}
		require.Equal(t, scheduler.All&^scheduler.Early, plain.core.hints.Scheme)
		own, err := Create(ctx, w, make([]int64, 1), hint.Without(scheduler.Pack))
		if err != nil {
			return err
		}
		require.Equal(t, scheduler.All&^(scheduler.Early|scheduler.Pack), own.core.hints.Scheme)

		serving, stop := context.WithCancel(ctx)
		served := make(chan error, 1)
		go func() { served <- Serve(serving, l, plain.As("words")) }()
		client, err := world.Dial(ctx, l.Addr().String(), world.WithoutKey(), leaving(scheduler.Merge))
		require.NoError(t, err)
		attached, err := Attach[int64](ctx, client, "words")
		require.NoError(t, err)
		require.Equal(t, scheduler.All&^scheduler.Merge, attached.core.hints.Scheme)
		err = errors.Join(attached.Close(), client.Close())
		stop()
		return errors.Join(err, <-served, own.Close(), plain.Close())
	}, leaving(scheduler.Early)))
}

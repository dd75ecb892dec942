package published_test

import (
	"context"
	"encoding/json"
	"expvar"
	"fmt"
	"log"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/window/published"
	"github.com/onesided/rma/world"
)

// runs counts those of the test, each of which takes names of its own: what is published stays.
var runs int

func TestPublished(t *testing.T) {
	runs++
	ofWorldName, ofWindowName := fmt.Sprint("TestPublished.world", runs), fmt.Sprint("TestPublished.window", runs)
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		win, err := window.Allocate[int64](ctx, w, 10)
		require.NoError(t, err)
		require.NoError(t, published.World(ofWorldName, w))
		require.NoError(t, published.Window(ofWindowName, win))
		err = published.Window(ofWorldName, win)
		require.ErrorIs(t, err, published.ErrTaken)
		require.ErrorContains(t, err, ofWorldName)
		require.NoError(t, win.LockAll(ctx))
		require.NoError(t, win.Put([]int64{1, 2, 3}, 0, 4))
		require.NoError(t, win.UnlockAll(ctx))
		var ofWindow window.Stats
		require.NoError(t, json.Unmarshal([]byte(expvar.Get(ofWindowName).String()), &ofWindow))
		require.Equal(t, window.Counts{Puts: 1, Bytes: 24}, ofWindow.Mapped)
		var ofWorld world.Stats
		require.NoError(t, json.Unmarshal([]byte(expvar.Get(ofWorldName).String()), &ofWorld))
		require.Equal(t, w.Stats().Collectives, ofWorld.Collectives)
		require.NoError(t, win.Close())
		require.NoError(t, json.Unmarshal([]byte(expvar.Get(ofWindowName).String()), &ofWindow))
		require.EqualValues(t, 1, ofWindow.Mapped.Operations())
		return nil
	}, world.WithStats()))
}

func Example() {
	err := world.Run(context.Background(), 1, func(ctx context.Context, w *world.World) error {
		if err := published.World("job", w); err != nil {
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		var s world.Stats
		if err := json.Unmarshal([]byte(expvar.Get("job").String()), &s); err != nil {
			return err
		}
		fmt.Println(s.Collectives, "collective call")
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: 1 collective call
}

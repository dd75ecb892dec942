package job

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// withUnknown runs two ranks on simulated cards that need registered memory. Rank 0 moves memory
// between its own and rank 1's, which has some bytes exposed.
func withUnknown(t *testing.T, profile string, bytes int, body func(ctx context.Context, l *Link, to verbs.RemoteRegion, theirs []byte) error, options ...Option) {
	t.Helper()
	s := simtest.New(t, profile, 1)
	var places [2]Places
	var theirs []byte
	require.NoError(t, Simulate(t.Context(), s, 2, func(ctx context.Context, w *World) error {
		memory := make([]byte, bytes)
		mine, err := w.Register(memory, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
		if err != nil {
			return err
		}
		places[w.rank] = mine.Remote()
		if w.rank == 1 {
			theirs = memory
		}
		if err := w.Barrier(ctx); err != nil || w.rank == 1 {
			return errors.Join(err, w.Barrier(ctx))
		}
		l, err := w.Link(1)
		if err != nil {
			return err
		}
		return errors.Join(body(ctx, l, w.Place(1, &places[1]), theirs), w.Barrier(ctx))
	}, options...))
}

// patterned fills memory with what differs from place to place.
func patterned(memory []byte, seed int) {
	for i := range memory {
		memory[i] = byte(i*7 + i>>8 + seed)
	}
}

// What the card does not know is moved by each protocol, in all lengths, to where it belongs.
func TestSimulatedTransfers(t *testing.T) {
	const most = 3 << 20
	profiles := []string{"graphene-ddr", "lioncub-2006"}
	for i, set := range []transfer.Set{
		transfer.All, transfer.Of(transfer.Copy), transfer.Of(transfer.CopyPipeline), transfer.Of(transfer.Superpipeline),
		transfer.Of(transfer.Register), transfer.Of(transfer.Pipeline), transfer.Of(transfer.CachingPipeline), transfer.Of(transfer.Cache), 0,
	} {
		for _, k := range testsize.Turns(i, len(profiles), 1) {
			profile := profiles[k]
			t.Run(fmt.Sprintf("%v/%s", set, profile), func(t *testing.T) {
				withUnknown(t, profile, most, func(ctx context.Context, l *Link, to verbs.RemoteRegion, theirs []byte) error {
					for round, bytes := range []int{1, 64, 127, 128, 1000, 4096, 5000, 32 << 10, 100_001, 256 << 10, 256<<10 + 1, 1 << 20, most - 5} {
						from, back := make([]byte, bytes+10)[3:][:bytes], make([]byte, bytes)
						for again := range 4 {
							patterned(from, round+again)
							if err := errors.Join(l.Write(ctx, from, to, 5), l.Flush(ctx)); err != nil {
								return err
							}
							require.Equal(t, from, theirs[5:][:bytes])
							patterned(theirs[5:][:bytes], 100+round+again)
							if err := errors.Join(l.Read(ctx, back, to, 5), l.Settle(ctx)); err != nil {
								return err
							}
							require.Equal(t, theirs[5:][:bytes], back)
						}
					}
					return nil
				}, movedBy(set))
			})
		}
	}
}

// Many operations at once go through few stages, and to several ranks.
func TestSimulatedStages(t *testing.T) {
	s := simtest.New(t, "graphene-ddr", 1)
	const ranks, bytes, puts, mostStages = 4, 100 << 10, 20, 12
	var places [ranks]Places
	var memory [ranks][]byte
	require.NoError(t, Simulate(t.Context(), s, ranks, func(ctx context.Context, w *World) error {
		memory[w.rank] = make([]byte, puts*bytes)
		mine, err := w.Register(memory[w.rank], verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
		if err != nil {
			return err
		}
		places[w.rank] = mine.Remote()
		if err := w.Barrier(ctx); err != nil || w.rank > 0 {
			return errors.Join(err, w.Barrier(ctx))
		}
		var from [ranks][puts][]byte
		for i := range puts {
			for rank := 1; rank < ranks; rank++ {
				l, err := w.Link(rank)
				if err != nil {
					return err
				}
				from[rank][i] = make([]byte, bytes)
				patterned(from[rank][i], i+rank)
				if err := l.Write(ctx, from[rank][i], w.Place(rank, &places[rank]), uint64(i*bytes)); err != nil {
					return err
				}
			}
		}
		for rank := 1; rank < ranks; rank++ {
			l, _ := w.Link(rank)
			if err := l.Flush(ctx); err != nil {
				return err
			}
			for i := range puts {
				require.Equal(t, from[rank][i], memory[rank][i*bytes:][:bytes])
			}
		}
		// All have been given back.
		c := w.cards[networkCard].memory
		for range mostStages {
			b, _, err := c.CopyBuffer(256<<10, false)
			require.NoError(t, err)
			require.Len(t, b.Memory, 256<<10)
			defer b.Release()
		}
		b, _, err := c.CopyBuffer(256<<10, false)
		require.NoError(t, err)
		require.Nil(t, b.Memory)
		return w.Barrier(ctx)
	}, movedBy(transfer.Of(transfer.Superpipeline))))
}

// registering is a device that knows no memory but that which is registered.
type registering struct{ verbs.Device }

func (r registering) Attributes() verbs.Attributes {
	a := r.Device.Attributes()
	a.ReservedLKey, a.MaxInline = 0, 0
	return a
}

func (r registering) Costs() verbs.Costs {
	return verbs.Costs{
		Post: 300, Gap: 100, Latency: 2000, ReadLatency: 4000, Bandwidth: 2e9, DuplexBandwidth: 4e9,
		CopyLatency: 20, CopyBandwidth: 5e9, Register: 20 * time.Microsecond, RegisterPage: 200, Deregister: 10 * time.Microsecond,
	}
}

// knowingNone are options under which ranks reach each other over such devices.
func knowingNone() []Option {
	return over(func(_ int, d verbs.Device) verbs.Device { return registering{d} })
}

// A buffer that is used again is registered once; when the collector has taken it the region ends.
func TestKeptUntilGone(t *testing.T) {
	towards(t, 1<<20, func(ctx context.Context, l *Link, to verbs.RemoteRegion, theirs []byte) error {
		stats := func() regcache.Stats { return l.world.Transfers().Kept }
		from := make([]byte, 64<<10)
		for round := range 10 {
			l.Use(from, true)
			patterned(from, round)
			if err := errors.Join(l.Write(ctx, from, to, 0), l.Flush(ctx)); err != nil {
				return err
			}
			require.Equal(t, from, theirs[:len(from)])
		}
		// The card may still read what has left: it is held.
		if err := l.Write(ctx, from, to, 0); err != nil {
			return err
		}
		l.Post()
		l.mu.Lock()
		held := slices.ContainsFunc(l.held[l.firstHeld:], func(h holding) bool { return h.hold.Holds() })
		l.mu.Unlock()
		require.True(t, held)
		if err := l.Flush(ctx); err != nil {
			return err
		}
		require.Equal(t, 1, stats().Regions)
		require.EqualValues(t, len(from), stats().Bytes)
		from = nil
		for stats().Regions > 0 {
			runtime.GC()
			l.card.memory.Tidy()
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		require.EqualValues(t, 1, stats().Invalidations)
		told := l.world.Transfers()
		require.EqualValues(t, 11, told.Operations[transfer.Cache]+told.Operations[transfer.Copy])
		require.EqualValues(t, 11*64<<10, told.Bytes[transfer.Cache]+told.Bytes[transfer.Copy])
		return nil
	}, append(knowingNone(), movedBy(transfer.Of(transfer.Cache, transfer.Copy)))...)
}

// Where the card takes no more, what nobody uses gives way.
func TestKeptGivesWay(t *testing.T) {
	const most = 40
	var regions atomic.Int64
	cards := over(func(_ int, d verbs.Device) verbs.Device { return &full{registering{d}, &regions, most} })
	towards(t, 4096, func(ctx context.Context, l *Link, to verbs.RemoteRegion, theirs []byte) error {
		buffers := make([][]byte, 3*most)
		for i := range buffers {
			buffers[i] = make([]byte, 4096)
			patterned(buffers[i], i)
			l.Use(buffers[i], true)
			if err := errors.Join(l.Write(ctx, buffers[i], to, 0), l.Flush(ctx)); err != nil {
				return err
			}
			require.Equal(t, buffers[i], theirs)
		}
		told := l.world.Transfers()
		require.EqualValues(t, len(buffers), told.Operations[transfer.Cache])
		require.EqualValues(t, len(buffers)*4096, told.Bytes[transfer.Cache], "none was copied")
		return nil
	}, append(cards, movedBy(transfer.Of(transfer.Cache)))...)
}

// full takes no more than so many weak regions.
type full struct {
	registering
	regions *atomic.Int64
	most    int64
}

func (f *full) RegisterMemory(memory []byte, access verbs.Access) (verbs.MemoryRegion, error) {
	if access&verbs.Weak == 0 {
		return f.registering.RegisterMemory(memory, access)
	}
	if f.regions.Add(1) > f.most {
		f.regions.Add(-1)
		return nil, fmt.Errorf("no more regions: %w", verbs.ErrMemory)
	}
	r, err := f.registering.RegisterMemory(memory, access)
	return &counted{r, f.regions}, err
}

type counted struct {
	verbs.MemoryRegion
	regions *atomic.Int64
}

func (c *counted) Deregister() error {
	c.regions.Add(-1)
	return c.MemoryRegion.Deregister()
}

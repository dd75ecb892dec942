package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/registration"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// between runs two ranks over checking cards. Rank 0 moves memory between its own and rank 1's, which
// has some bytes exposed.
func between(t *testing.T, c *checks, bytes int, body func(ctx context.Context, l *Link, to verbs.RemoteRegion, theirs []byte) error, options ...Option) {
	t.Helper()
	towards(t, bytes, body, append(c.network(), options...)...)
	require.Empty(t, c.stale)
	require.Empty(t, c.moved)
}

// there writes memory and reads it back into into, which may be the same, some times.
func there(ctx context.Context, l *Link, to verbs.RemoteRegion, theirs, memory, into []byte) error {
	for round := range 4 {
		patterned(memory, round)
		want := bytes.Clone(memory)
		l.Use(memory, true)
		if err := errors.Join(l.Write(ctx, memory, to, 0), l.Flush(ctx)); err != nil {
			return err
		}
		if !bytes.Equal(theirs[:len(want)], want) {
			return fmt.Errorf("use %d: %d bytes that were written are not what they were", round, len(want))
		}
		clear(into)
		l.Use(into, false)
		if err := errors.Join(l.Read(ctx, into, to, 0), l.Settle(ctx)); err != nil {
			return err
		}
		if !bytes.Equal(into, want) {
			return fmt.Errorf("use %d: %d bytes that were read are not what they were", round, len(want))
		}
	}
	return nil
}

var someSets = []transfer.Set{
	transfer.All, transfer.Of(transfer.Copy), transfer.Of(transfer.Superpipeline), transfer.Of(transfer.Register), transfer.Of(transfer.Pipeline),
	transfer.Of(transfer.Cache), transfer.Of(transfer.CachingPipeline), 0,
}

// movedBy has memory that the card does not know moved by these protocols only.
func movedBy(set transfer.Set) Option {
	return Tune(func(t *tuning.Tuning) { t.NoProtocols = transfer.All &^ set })
}

func keepingAtMost(bytes uint64, regions int) Option {
	return func(s *Settings) { s.kept = regcache.Limits{Bytes: bytes, Regions: regions} }
}

// keptBy tells what the link's card keeps.
func keptBy(l *Link) regcache.Stats { return l.card.memory.Transfers().Kept }

// keeping are the protocols that keep what they register.
var keeping = transfer.Of(transfer.Cache, transfer.CachingPipeline)

// A card that takes no more memory gets the data by a copy, and the program's log says so once.
func TestRefusedIsCopied(t *testing.T) {
	const most = 1 << 20
	for _, set := range someSets {
		for name, after := range map[string]int64{"all": 0, "after 3": 3} {
			t.Run(fmt.Sprintf("%v/%s", set, name), func(t *testing.T) {
				var left atomic.Int64
				left.Store(1 << 30)
				var log logged
				c := checks{refuse: func() error {
					if left.Add(-1) < 0 {
						return fmt.Errorf("this test says so: %w", verbs.ErrMemory)
					}
					return nil
				}}
				between(t, &c, most, func(ctx context.Context, l *Link, to verbs.RemoteRegion, theirs []byte) error {
					// Nothing goes without any memory that the card knows. Messages take up to so many
					// letters that nobody has heard of yet.
					var letters [2 * signalEvery]registration.Buffer
					for i := range letters {
						var err error
						if letters[i], _, err = l.world.registry.Eager().Take(); err != nil {
							return err
						}
					}
					for i := range letters {
						letters[i].Release()
					}
					left.Store(after)
					// The rest of the job is not to fail for that.
					defer left.Store(1 << 30)
					for _, bytes := range []int{100, 1000, 5000, 100_000, most} {
						if err := there(ctx, l, to, theirs, make([]byte, bytes), make([]byte, bytes)); err != nil {
							return fmt.Errorf("%d bytes: %w", bytes, err)
						}
					}
					return nil
				}, movedBy(set), WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				const refused = "the card takes no more memory"
				if after == 0 {
					await.True(t, "the warning", func() bool { return strings.Contains(log.String(), refused) })
				}
				said := strings.Count(log.String(), refused)
				require.True(t, said == 1 || said == 0 && after > 0, log.String())
			})
		}
	}
}

// logged is what was logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// What a request needs lasts as long as it is on the wire, also where the operation that it is a part
// of has come no further.
func TestPartsKeepTheirRegion(t *testing.T) {
	const most = 1 << 20
	for _, set := range []transfer.Set{transfer.Of(transfer.Cache), transfer.Of(transfer.Register)} {
		t.Run(fmt.Sprint(set), func(t *testing.T) {
			c := checks{most: 4 << 10}
			stopped, goOn := make(chan struct{}), make(chan struct{})
			theirs := make([]byte, most)
			require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
				places := make([]Places, 1)
				if w.rank == 1 {
					region, err := w.Register(theirs, verbs.LocalWrite|verbs.RemoteWrite)
					if err != nil {
						return err
					}
					places[0] = region.Remote()
					if err := errors.Join(Broadcast(ctx, w, 1, places), w.Barrier(ctx)); err != nil {
						return err
					}
					w.engine.Lock()
					close(stopped)
					<-goOn
					w.engine.Unlock()
					return w.Barrier(ctx)
				}
				carryOn := sync.OnceFunc(func() { close(goOn) })
				defer carryOn()
				l, err := w.Link(1)
				if err != nil {
					return err
				}
				if err := errors.Join(Broadcast(ctx, w, 1, places), l.Flush(ctx), w.Barrier(ctx)); err != nil {
					return err
				}
				<-stopped
				// Until the other rank goes on, what is behind this message stays with the card.
				if err := l.Tell(&Message{Kind: kindNothing}, nil); err != nil {
					return err
				}
				memory := make([]byte, most)
				patterned(memory, 1)
				short, cancel := context.WithTimeout(ctx, 10*time.Millisecond) // expires
				defer cancel()
				l.Use(memory, true)
				if err := l.Write(short, memory, w.Place(1, &places[0]), 0); !errors.Is(err, context.DeadlineExceeded) {
					return fmt.Errorf("all of it was sent, or: %w", err)
				}
				l.card.memory.Tidy()
				carryOn()
				if err := l.Flush(ctx); err != nil {
					return err
				}
				require.Equal(t, memory[:64<<10], theirs[:64<<10])
				if n := keptBy(l).Regions; n != 0 {
					return fmt.Errorf("%d regions are kept", n)
				}
				return w.Barrier(ctx)
			}, append(c.network(), movedBy(set), keepingAtMost(0, 0))...))
		})
	}
}

// ofPackage is memory of the program's that is not on Go's heap.
var ofPackage [1 << 20]byte

// Memory of any kind is moved, and what is not on Go's heap is never kept.
func TestMemoryOfAnyKind(t *testing.T) {
	const most = 1 << 20
	for _, set := range someSets {
		t.Run(fmt.Sprint(set), func(t *testing.T) {
			var c checks
			between(t, &c, most, func(ctx context.Context, l *Link, to verbs.RemoteRegion, theirs []byte) error {
				mapping, err := mapped(most)
				if err != nil {
					return err
				}
				for _, memory := range [][]byte{ofPackage[:], ofPackage[100:][:5000], mapping, mapping[1:][:300]} {
					if err := there(ctx, l, to, theirs, memory, memory); err != nil {
						return err
					}
				}
				require.Zero(t, keptBy(l).Regions)
				require.Zero(t, c.registered)

				// What begins on a stack is on the heap by the time that a card hears of it.
				var local [5000]byte
				if err := there(ctx, l, to, theirs, local[:], local[:]); err != nil {
					return err
				}
				huge := make([]byte, 8*most)
				for _, memory := range [][]byte{huge[:200], huge[5*most+123:][:most], huge[len(huge)-5000:]} {
					if err := there(ctx, l, to, theirs, memory, memory); err != nil {
						return err
					}
				}
				if set&keeping == set && set != 0 {
					require.NotZero(t, c.registered)
					require.Less(t, keptBy(l).Bytes, uint64(4*most), "only what was used")
				}
				return unmap(mapping)
			}, movedBy(set))
		})
	}
}

// With nothing to be kept all is right, and nothing is.
func TestNothingIsKept(t *testing.T) {
	for name, limits := range map[string]regcache.Limits{"none": {}, "no bytes": {Regions: 10}, "no regions": {Bytes: 1 << 20}} {
		t.Run(name, func(t *testing.T) {
			var c checks
			between(t, &c, 1<<20, func(ctx context.Context, l *Link, to verbs.RemoteRegion, theirs []byte) error {
				for _, bytes := range []int{200, 100_000, 1 << 20} {
					memory := make([]byte, bytes)
					if err := there(ctx, l, to, theirs, memory, memory); err != nil {
						return err
					}
					require.Zero(t, keptBy(l).Regions)
				}
				l.card.memory.Tidy()
				return l.card.device.(*checking).nothingLeft(ctx)
			}, movedBy(transfer.Of(transfer.Cache)), keepingAtMost(limits.Bytes, limits.Regions))
			require.NotZero(t, c.registered)
		})
	}
}

// nothingLeft returns when no weak region is left. The background goroutine may be about to deregister the last.
func (d *checking) nothingLeft(ctx context.Context) error {
	return await.Until(ctx, "weak regions to be deregistered", func() bool {
		d.mu.RLock()
		defer d.mu.RUnlock()
		return len(d.weak) == 0
	})
}

// Buffers that overlap are written from at once, by many goroutines and in many requests that nobody has
// waited for yet.
func TestOverlappingAtOnce(t *testing.T) {
	const writers, each, bytesEach = 16, 64, 10_000
	for _, set := range someSets {
		t.Run(fmt.Sprint(set), func(t *testing.T) {
			var c checks
			between(t, &c, writers*each*bytesEach, func(ctx context.Context, l *Link, to verbs.RemoteRegion, theirs []byte) error {
				array := bytes.Clone(pattern()[:20*bytesEach])
				var errs [writers]error
				var all sync.WaitGroup
				for i := range writers {
					all.Go(func() {
						// from is where a write begins: 3 of 4 bytes are the next one's too.
						from := func(k int) int { return (i*each + k) * bytesEach / 4 % (len(array) - bytesEach) }
						for k := range each {
							memory := array[from(k):][:bytesEach]
							l.Use(memory, true)
							errs[i] = errors.Join(errs[i], l.Write(ctx, memory, to, uint64((i*each+k)*bytesEach)))
						}
						errs[i] = errors.Join(errs[i], l.Flush(ctx))
						for k := range each {
							if !bytes.Equal(theirs[(i*each+k)*bytesEach:][:bytesEach], array[from(k):][:bytesEach]) {
								errs[i] = errors.Join(errs[i], fmt.Errorf("write %d of %d is not what was written", k, i))
							}
						}
					})
				}
				all.Wait()
				return errors.Join(errs[:]...)
			}, movedBy(set), keepingAtMost(64<<10, 3))
		})
	}
}

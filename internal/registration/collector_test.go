package registration_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/object"
	"github.com/onesided/rma/internal/registration"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// After Close the Registry is let go of, even while the program keeps the buffers: of regions that are kept or in use then, that were
// registered meanwhile, that ended before, and of one that was refused.
func TestCloseLetsGo(t *testing.T) {
	device := newDevice(t)
	memory := [5][]byte{make([]byte, 10_000), make([]byte, 20_000), make([]byte, 30_000), make([]byte, 40_000), make([]byte, 50_000)}
	closed := func() weak.Pointer[registration.Registry] {
		r := over(device, configOf(transfer.Of(transfer.Cache)))
		c := r.Card(registration.Network)
		keep(t, c, memory[0])
		keep(t, c, memory[1])
		hold := whole(t, c, memory[1])
		keep(t, c, memory[3][:1000])
		keep(t, c, memory[3])
		c.Tidy()
		require.Equal(t, 3, device.weak())
		device.refuse = func(int, verbs.Access) error { return errors.New("refused") }
		c.Use(memory[4])
		plan := c.Plan(memory[4], true)
		require.True(t, plan.Next().Copied)
		device.refuse = nil
		r.Close()
		keep(t, c, memory[2])
		require.NoError(t, device.use(memory[1], hold.Key()), "the device ends regions, not Close")
		hold.Release()
		return weak.Make(r)
	}()
	await.True(t, "the collector to take the Registry", func() bool {
		runtime.GC()
		return closed.Value() == nil
	})
	runtime.KeepAlive(&memory)
}

// A request has its memory as long as it holds the region, which does not.
func TestHoldKeepsMemory(t *testing.T) {
	device := newDevice(t)
	c := cardOver(device, transfer.Of(transfer.Cache))
	memory := make([]byte, 64<<10)
	keep(t, c, memory)
	hold := whole(t, c, memory)
	object, extent := weak.Make(&memory[0]), bounds.Of(memory)
	memory = nil
	for range 3 {
		runtime.GC()
	}
	require.NotNil(t, object.Value(), "the collector has taken what a request needs")
	require.NoError(t, device.useOf(extent, hold.Key()))
	hold.Release()
	await.True(t, "the collector to take the memory", func() bool {
		runtime.GC()
		return object.Value() == nil
	})
	runtime.KeepAlive(&hold)
}

// When the collector has taken a buffer its region ends, without another look-up.
func TestGoneIsDeregistered(t *testing.T) {
	device := newDevice(t)
	c := cardOver(device, transfer.Of(transfer.Cache))
	memory := make([]byte, 64<<10)
	keep(t, c, memory)
	require.Equal(t, 1, device.weak())
	c.Tidy()
	require.Equal(t, 1, device.weak(), "the memory is still there")
	runtime.KeepAlive(memory)
	await.True(t, "the region to end", func() bool {
		runtime.GC()
		c.Tidy()
		return device.weak() == 0
	})
	kept := c.Transfers().Kept
	require.Zero(t, kept.Regions)
	require.EqualValues(t, 1, kept.Invalidations)
	require.Equal(t, 1, device.dead)
}

// A region that is in use ends after its last request, even if it is kept no more.
func TestEndsAfterRequests(t *testing.T) {
	device := newDevice(t)
	config := configOf(transfer.Of(transfer.Cache))
	config.Kept = regcache.Limits{}
	c := over(device, config).Card(registration.Network)
	memory := make([]byte, 64<<10)
	c.Use(memory)
	plan := c.Plan(memory, true)
	piece := plan.Next()
	second := whole(t, c, memory)
	for _, hold := range []registration.Hold{piece.Hold, second} {
		c.Tidy()
		require.NoError(t, device.use(memory, hold.Key()))
		hold.Release()
		require.False(t, hold.Holds())
	}
	c.Tidy()
	require.Zero(t, device.weak())
}

// Few regions are deregistered at once, which progress waits for, and in the end all.
func TestTidyIsShort(t *testing.T) {
	const parts = 40
	device := newDevice(t)
	c := cardOver(device, transfer.Of(transfer.Cache))
	memory := make([]byte, parts*1000)
	for i := range parts {
		keep(t, c, memory[i*1000:][:500])
	}
	require.Equal(t, parts, device.weak())
	// One region replaces all.
	keep(t, c, memory)
	for before := device.weak(); before > 1; before = device.weak() {
		c.Tidy()
		require.LessOrEqual(t, before-device.weak(), 16)
		require.Less(t, device.weak(), before)
	}
	require.Equal(t, 1, c.Transfers().Kept.Regions)
	runtime.KeepAlive(memory)
}

// settle returns when the clean-up of an object that died earlier would have been called: those of later objects have been.
func settle(t *testing.T) {
	for range 3 {
		gone := make(chan struct{})
		_, ok := object.Of(make([]byte, 64<<10), func(gone chan struct{}) { close(gone) }, gone)
		require.True(t, ok)
		await.True(t, "a later object to be gone", func() bool {
			runtime.GC()
			select {
			case <-gone:
				return true
			default:
				return false
			}
		})
	}
}

// In virtual time the collector changes nothing.
func TestCollectorInVirtualTime(t *testing.T) {
	device := newDevice(t)
	config := configOf(transfer.Of(transfer.Cache))
	config.Virtual = true
	c := over(device, config).Card(registration.Network)
	memory := make([]byte, 64<<10)
	keep(t, c, memory)
	object := weak.Make(&memory[0])
	memory = nil
	await.True(t, "the collector to take the memory", func() bool {
		runtime.GC()
		return object.Value() == nil
	})
	settle(t)
	c.Tidy()
	require.Equal(t, 1, device.weak())
	require.Equal(t, 1, c.Transfers().Kept.Regions)
}

// Where the card takes no more regions, those that nobody uses give way, and none that is in use.
func TestGivesWay(t *testing.T) {
	const most = 40
	device := newDevice(t)
	device.refuse = func(int, verbs.Access) error {
		if device.registered-device.deregistered >= most {
			return fmt.Errorf("no more regions: %w", verbs.ErrMemory)
		}
		return nil
	}
	c := cardOver(device, transfer.Of(transfer.Cache))
	buffers := make([][]byte, 3*most)
	used := make([]byte, 4096)
	keep(t, c, used)
	hold := whole(t, c, used)
	for i := range buffers {
		buffers[i] = make([]byte, 4096)
		keep(t, c, buffers[i])
		require.LessOrEqual(t, device.weak(), most)
		require.NoError(t, device.use(used, hold.Key()))
	}
	require.Zero(t, c.Transfers().Operations[transfer.Copy])
	hold.Release()
}

// All give way if need be, which are more than Tidy deregisters at once.
func TestAllGiveWay(t *testing.T) {
	const parts = 40
	device := newDevice(t)
	c := cardOver(device, transfer.Of(transfer.Cache))
	memory := make([]byte, parts*1000)
	for i := range parts {
		keep(t, c, memory[i*1000:][:500])
	}
	require.Equal(t, parts, device.weak())
	device.refuse = func(int, verbs.Access) error {
		if device.registered > device.deregistered {
			return fmt.Errorf("no other region: %w", verbs.ErrMemory)
		}
		return nil
	}
	keep(t, c, make([]byte, 500))
	require.Equal(t, 1, device.weak())
	runtime.KeepAlive(memory)
}

// A worker uses buffers that the collector frees, and gives back to the system, meanwhile.
type worker struct {
	card   *registration.Card
	device *device
	random *rand.Rand
	array  *atomic.Pointer[[]byte]
	old    [4][]byte
	// held are of requests that are outstanding. Their holds alone have the memory.
	held []outstanding
}

type outstanding struct {
	hold   registration.Hold
	memory bounds.Extent
}

// bytes is a length of which there are few, so that the memory of one buffer is soon another's.
func (w *worker) bytes() int {
	return []int{128, 1000, 4096, 5000, 32 << 10, 100_000, 256 << 10, 1 << 20}[w.random.IntN(8)]
}

// buffer is one that is used for long, or a part of an array that all use, or new.
func (w *worker) buffer() []byte {
	n := w.bytes()
	switch w.random.IntN(8) {
	case 0:
		i := w.random.IntN(len(w.old))
		if w.old[i] == nil || w.random.IntN(20) == 0 {
			w.old[i] = make([]byte, n)
		}
		return w.old[i]
	case 1, 2:
		array := w.array.Load()
		if array == nil || w.random.IntN(50) == 0 {
			another := make([]byte, 4<<20)
			array = &another
			w.array.Store(array)
		}
		return (*array)[w.random.IntN(len(*array)-n):][:n]
	}
	return make([]byte, n)
}

func (w *worker) use(memory []byte) error {
	w.card.Use(memory)
	plan := w.card.Plan(memory, w.random.IntN(2) == 0)
	if hold, ok := plan.Whole(); ok {
		return w.post(memory, hold)
	}
	for plan.More() {
		if piece := plan.Next(); !piece.Copied {
			if err := w.post(piece.Memory, piece.Hold); err != nil {
				return err
			}
		}
	}
	return nil
}

// post looks at a request when it is posted, and completes others.
func (w *worker) post(memory []byte, hold registration.Hold) error {
	w.held = append(w.held, outstanding{hold, bounds.Of(memory)})
	if err := w.device.use(memory, hold.Key()); err != nil {
		return err
	}
	for len(w.held) > w.random.IntN(20) {
		one := &w.held[0]
		if err := w.device.useOf(one.memory, one.hold.Key()); err != nil {
			return fmt.Errorf("outstanding: %w", err)
		}
		one.hold.Release()
		w.held = w.held[1:]
	}
	return nil
}

// traffic has workers use a card until it is over, or one has found a use of a region for memory that it was not registered for,
// which is the error.
func traffic(c *registration.Card, device *device, over func(turn int) bool) error {
	var array atomic.Pointer[[]byte]
	var workers sync.WaitGroup
	var errs [4]error
	var failed atomic.Bool
	for i := range errs {
		w := &worker{card: c, device: device, array: &array, random: rand.New(rand.NewPCG(uint64(i), 0))}
		workers.Go(func() {
			for turn := 0; !failed.Load() && !over(turn); turn++ {
				if errs[i] = w.use(w.buffer()); errs[i] != nil {
					failed.Store(true)
				}
				switch w.random.IntN(40) {
				case 0:
					debug.FreeOSMemory()
				case 1, 2:
					runtime.GC()
				case 3, 4, 5:
					c.Tidy()
				}
			}
			for k := range w.held {
				w.held[k].hold.Release()
			}
		})
	}
	workers.Wait()
	return errors.Join(errs[:]...)
}

// fewer is what the collector's tests keep at most.
var fewer = regcache.Limits{Bytes: 32 << 20, Regions: 200}

// Whatever the collector frees and the program gets again, no region is used for memory that it was not registered for.
func TestCollector(t *testing.T) {
	for name, set := range map[string]transfer.Set{"cache": transfer.Of(transfer.Cache), "caching pipeline": transfer.Of(transfer.CachingPipeline), "all": transfer.All} {
		t.Run(name, func(t *testing.T) {
			device := newDevice(t)
			config := configOf(set)
			config.Kept = fewer
			end := time.Now().Add(await.Limit)
			met := func() bool {
				device.mu.Lock()
				defer device.mu.Unlock()
				return device.dead > 0
			}
			require.NoError(t, traffic(over(device, config).Card(registration.Network), device, func(turn int) bool {
				return turn >= testsize.N(300) && (met() || time.Now().After(end))
			}))
			require.True(t, met(), "no memory was freed that was registered")
			t.Logf("%d regions, %d whose memory was freed", device.registered, device.dead)
		})
	}
}

// The same traffic finds a use of a region whose memory was freed if no look-up looks at the object.
func TestCollectorNoticed(t *testing.T) {
	device := newDevice(t)
	config := configOf(transfer.Of(transfer.Cache))
	config.Kept = fewer
	c := over(device, config).Card(registration.Network)
	registration.Trust(c)
	end := time.Now().Add(await.Limit)
	err := traffic(c, device, func(int) bool { return time.Now().After(end) })
	require.ErrorContains(t, err, "a region whose memory was freed")
}

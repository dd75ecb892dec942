package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/object"
	"github.com/onesided/rma/internal/registration"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// checking is a card that needs registered memory, and looks at each request whether what a weak region
// was registered over is still there: by the object, which it knows on its own, and by the page
// frames, where it can see them.
type checking struct {
	registering
	rank   int
	checks *checks

	mu sync.RWMutex
	// weak are the regions that keep no memory alive, by their keys.
	weak map[uint32]*checkedRegion
}

// checks are what the cards of a job have seen.
type checks struct {
	// refuse says why rank 0's card refuses a region, if not nil.
	refuse func() error
	// most is how many bytes a request moves at most, if not 0.
	most int

	mu sync.Mutex
	// registered counts weak regions, again those that begin where others began before, and gone those
	// whose memory was no more when they ended.
	registered, again, gone int
	began                   map[uint64]bool
	// stale are uses of memory that is not what was registered, moved those of other frames.
	stale, moved []string

	// used counts uses of weak regions, seen those whose frames could be seen.
	used, seen atomic.Int64
}

// met tells whether there were regions at addresses of others, and some whose memory was freed.
func (c *checks) met() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.again > 0 && c.gone > 0
}

// network has the ranks of a job reach each other over checking cards.
func (c *checks) network() []Option {
	c.began = make(map[uint64]bool)
	return over(func(rank int, d verbs.Device) verbs.Device {
		return &checking{registering: registering{d}, rank: rank, checks: c, weak: make(map[uint32]*checkedRegion)}
	})
}

// checkedRegion is a weak region.
type checkedRegion struct {
	verbs.MemoryRegion
	card   *checking
	object object.Object
	frames *frames
}

func (d *checking) Attributes() verbs.Attributes {
	a := d.registering.Attributes()
	a.MaxInline = 64
	if d.checks.most > 0 {
		a.MaxMessage = d.checks.most
	}
	return a
}

func (d *checking) RegisterMemory(memory []byte, access verbs.Access) (verbs.MemoryRegion, error) {
	c := d.checks
	if d.rank == 0 && c.refuse != nil {
		if err := c.refuse(); err != nil {
			return nil, err
		}
	}
	region, err := d.registering.RegisterMemory(memory, access)
	if err != nil || access&verbs.Weak == 0 {
		return region, err
	}
	r := &checkedRegion{MemoryRegion: region, card: d, frames: pin(memory)}
	r.object, _ = object.Of(memory, func(int) {}, 0)
	d.mu.Lock()
	d.weak[region.LKey()] = r
	d.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.registered++
	if first := bounds.Address(memory); c.began[first] {
		c.again++
	} else {
		c.began[first] = true
	}
	return r, nil
}

func (r *checkedRegion) Deregister() error {
	r.card.mu.Lock()
	delete(r.card.weak, r.LKey())
	r.card.mu.Unlock()
	if c := r.card.checks; r.object.Alive() == nil {
		c.mu.Lock()
		c.gone++
		c.mu.Unlock()
	}
	r.object.Stop()
	r.frames.unpin()
	return r.MemoryRegion.Deregister()
}

// check looks at a use of memory that may be in a weak region.
func (d *checking) check(s *verbs.Segment) {
	d.mu.RLock()
	r := d.weak[s.LKey]
	d.mu.RUnlock()
	if r == nil || len(s.Memory) == 0 {
		return
	}
	c := d.checks
	c.used.Add(1)
	stale, moved := r.object.Alive() == nil, false
	if r.frames != nil {
		c.seen.Add(1)
		moved = !r.frames.behind(s.Memory)
	}
	if !stale && !moved {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	use := fmt.Sprintf("%d bytes at %#x by the key %#x", len(s.Memory), bounds.Address(s.Memory), s.LKey)
	if stale {
		c.stale = append(c.stale, use)
	}
	if moved {
		c.moved = append(c.moved, use)
	}
}

// wrong tells whether a use was, by both kinds of looks where there are both.
func (c *checks) wrong() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.stale) > 0 && (len(c.moved) > 0 || c.seen.Load() == 0)
}

func (d *checking) Connect(address string, hello []byte, config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	pair, err := d.registering.Connect(address, hello, config)
	return d.checked(pair, err)
}

func (d *checking) PollConnections(into []verbs.ConnectionRequest) int {
	n := d.registering.PollConnections(into)
	for i, request := range into[:n] {
		into[i] = checkedRequest{request, d}
	}
	return n
}

func (d *checking) checked(pair verbs.QueuePair, err error) (verbs.QueuePair, error) {
	if err != nil {
		return nil, err
	}
	return checkedPair{pair, d}, nil
}

type checkedRequest struct {
	verbs.ConnectionRequest
	card *checking
}

func (r checkedRequest) Accept(config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	pair, err := r.ConnectionRequest.Accept(config)
	return r.card.checked(pair, err)
}

type checkedPair struct {
	verbs.QueuePair
	card *checking
}

func (p checkedPair) PostSend(requests []verbs.SendRequest) (int, error) {
	for i := range requests {
		if requests[i].Flags&verbs.Inline != 0 {
			continue
		}
		for k := range requests[i].Segments {
			p.card.check(&requests[i].Segments[k])
		}
	}
	return p.QueuePair.PostSend(requests)
}

const (
	stressedRanks   = 3
	stressedWorkers = 3
	// stressedBytes are the most that are moved at once.
	stressedBytes = 1 << 20
)

// pattern is what is moved, from different places of it.
var pattern = sync.OnceValue(func() []byte {
	memory := make([]byte, 4*stressedBytes)
	_, _ = rand.NewChaCha8([32]byte{}).Read(memory)
	return memory
})

// stress has ranks use memory that the collector frees and gives back to the system meanwhile.
type stress struct {
	over func() bool
	// theirs are the ranks' exposed memory, of which each goroutine has a part.
	theirs [stressedRanks][]byte
}

func (s *stress) run(t *testing.T, c *checks, options ...Option) {
	t.Helper()
	for rank := range s.theirs {
		s.theirs[rank] = make([]byte, stressedRanks*stressedWorkers*stressedBytes)
	}
	options = append(c.network(), options...)
	require.NoError(t, Run(t.Context(), stressedRanks, s.rank, options...))
}

func (s *stress) rank(ctx context.Context, w *World) error {
	region, err := w.Register(s.theirs[w.rank], verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead)
	if err != nil {
		return err
	}
	places := make([]Places, stressedRanks)
	if err := AllGather(ctx, w, []Places{region.Remote()}, places); err != nil {
		return err
	}
	// Those of a rank write from parts of an array that overlap.
	var array atomic.Pointer[[]byte]
	errs := make([]error, stressedWorkers)
	var workers sync.WaitGroup
	for i := range errs {
		worker := &stressWorker{stress: s, w: w, places: places, number: w.rank*stressedWorkers + i, array: &array}
		worker.random = rand.New(rand.NewPCG(uint64(worker.number), 0))
		workers.Go(func() { errs[i] = worker.work(ctx) })
	}
	workers.Wait()
	return errors.Join(errors.Join(errs...), w.Barrier(ctx))
}

type stressWorker struct {
	*stress
	w      *World
	places []Places
	number int
	array  *atomic.Pointer[[]byte]
	random *rand.Rand
	// old are buffers that are used for long.
	old [4][]byte
}

func (s *stressWorker) work(ctx context.Context) error {
	for !s.over() {
		l, err := s.w.Link((s.w.rank + 1 + s.random.IntN(stressedRanks-1)) % stressedRanks)
		if err != nil {
			return err
		}
		switch s.random.IntN(8) {
		case 0:
			i := s.random.IntN(len(s.old))
			if s.old[i] == nil || s.random.IntN(20) == 0 {
				s.old[i] = make([]byte, s.bytes())
			}
			err = s.use(ctx, l, s.old[i], 3)
		case 1, 2:
			err = s.part(ctx, l)
		default:
			err = s.use(ctx, l, make([]byte, s.bytes()), 1+s.random.IntN(3))
		}
		if err != nil {
			return err
		}
		switch s.random.IntN(60) {
		case 0:
			debug.FreeOSMemory()
		case 1, 2, 3:
			runtime.GC()
		}
	}
	return nil
}

// bytes is a length of which there are few, so that the memory of one is soon another's.
func (s *stressWorker) bytes() int {
	return []int{128, 1000, 4096, 5000, 32 << 10, 100_000, 256 << 10, stressedBytes}[s.random.IntN(8)]
}

// use uses a buffer some times, at last as one that nobody else knows of.
func (s *stressWorker) use(ctx context.Context, l *Link, memory []byte, times int) error {
	for ; times > 0; times-- {
		n, at := len(memory), s.random.IntN(len(pattern())-len(memory))
		var err error
		if s.random.IntN(3) > 0 {
			copy(memory, pattern()[at:])
			if times > 1 {
				err = s.write(ctx, l, memory, n, at)
			} else {
				return s.write(ctx, l, memory, n, at)
			}
		} else {
			err = s.read(ctx, l, memory, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// part writes a part of the array, which is another one now and then.
func (s *stressWorker) part(ctx context.Context, l *Link) error {
	array := s.array.Load()
	if array == nil || s.random.IntN(50) == 0 {
		another := bytes.Clone(pattern())
		array = &another
		s.array.Store(array)
	}
	n := s.bytes()
	at := s.random.IntN(len(*array) - n)
	return s.write(ctx, l, (*array)[at:][:n], n, at)
}

// their is the part of the target's memory that is this goroutine's.
func (s *stressWorker) their(l *Link) (memory []byte, offset uint64) {
	at := s.number * stressedBytes
	return s.theirs[l.rank][at:][:stressedBytes], uint64(at)
}

// write writes the first n bytes of memory, which are the pattern's from a place on. Until it has
// arrived the link alone knows of it.
func (s *stressWorker) write(ctx context.Context, l *Link, memory []byte, n, at int) error {
	theirs, offset := s.their(l)
	l.Use(memory[:n], true)
	if err := l.Write(ctx, memory[:n], s.w.Place(l.rank, &s.places[l.rank]), offset); err != nil {
		return err
	}
	if s.random.IntN(30) == 0 {
		runtime.GC()
	}
	if err := l.Flush(ctx); err != nil {
		return err
	}
	if !bytes.Equal(theirs[:n], pattern()[at:][:n]) {
		return fmt.Errorf("%d bytes that were written are not what they were", n)
	}
	return nil
}

func (s *stressWorker) read(ctx context.Context, l *Link, memory []byte, at int) error {
	theirs, offset := s.their(l)
	copy(theirs[:len(memory)], pattern()[at:])
	l.Use(memory, false)
	if err := errors.Join(l.Read(ctx, memory, s.w.Place(l.rank, &s.places[l.rank]), offset), l.Settle(ctx)); err != nil {
		return err
	}
	if !bytes.Equal(memory, pattern()[at:][:len(memory)]) {
		return fmt.Errorf("%d bytes that were read are not what they were", len(memory))
	}
	return nil
}

// Whatever the collector frees, and gives back to the system, and the program gets again: no region is
// used for memory that it was not registered for.
func TestCollectorUnderTraffic(t *testing.T) {
	for name, set := range map[string]transfer.Set{"cache": transfer.Of(transfer.Cache), "caching pipeline": transfer.Of(transfer.CachingPipeline), "all": transfer.All} {
		t.Run(name, func(t *testing.T) {
			var c checks
			// On a busy machine it takes longer until there was what is looked for.
			end := time.Now().Add(await.Limit)
			uses := int64(testsize.N(400))
			s := stress{over: func() bool { return c.used.Load() >= uses && c.met() || time.Now().After(end) }}
			s.run(t, &c, movedBy(set), keepingAtMost(32<<20, 200))
			require.Empty(t, c.stale)
			require.Empty(t, c.moved)
			require.NotZero(t, c.again, "no address was used for another buffer")
			require.NotZero(t, c.gone, "no memory was freed that was registered")
			t.Logf("%d regions, %d at addresses of others, %d whose memory was freed; %d uses, of %d the frames were seen", c.registered, c.again, c.gone, c.used.Load(), c.seen.Load())
		})
	}
}

// A use of memory that is another's than what was registered at its address is noticed.
func TestCollectorNoticed(t *testing.T) {
	var c checks
	// On a busy machine it takes longer until memory is given back and used again.
	end := time.Now().Add(await.Limit)
	towards(t, stressedBytes, func(ctx context.Context, l *Link, to verbs.RemoteRegion, _ []byte) error {
		// stale are the keys of regions whose memory is let go of at once, by their addresses.
		stale := make(map[uint64]uint32)
		for !c.wrong() && time.Now().Before(end) {
			memory := make([]byte, stressedBytes)
			copy(memory, pattern())
			key, again := stale[bounds.Address(memory)]
			if !again {
				region, err := l.card.device.RegisterMemory(memory, verbs.LocalWrite|verbs.Weak)
				if err != nil {
					return err
				}
				key = region.LKey()
				stale[bounds.Address(memory)] = key
			}
			if err := errors.Join(l.moveAs(ctx, verbs.OpRDMAWrite, memory, key, registration.Hold{}, to, 0), l.Flush(ctx)); err != nil {
				return err
			}
			memory = nil
			debug.FreeOSMemory()
		}
		return nil
	}, c.network()...)
	require.NotEmpty(t, c.stale)
	require.True(t, c.wrong(), "%d regions, stale %d, of other frames %d", c.registered, len(c.stale), len(c.moved))
	t.Logf("after %d uses: %d of stale regions, the first of %s; %d of other frames, of %d that could be seen", c.used.Load(), len(c.stale), c.stale[0], len(c.moved), c.seen.Load())
}

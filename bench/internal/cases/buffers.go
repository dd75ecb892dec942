package cases

import (
	"context"
	"errors"
	"time"

	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/channel"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Buffers are what one rank measures with: a window, its views and the buffers, laid out as in peers/mpi_rma.c. It may
// be a hash table instead, or buffers without a window.
type Buffers struct {
	views

	buffer   []byte
	addends  []float64
	sums     []float64 // of collectives
	operands []int64
	masks    []uint64
	counts   []int64 // of countEach, with the same number of displacements
	places   []int
	result   int64
	seed     uint64 // of spot
	state    uint64 // of arithmetic
	// root is the rank of the next broadcast, broadcasts the number of broadcasts before it.
	root, broadcasts int
	// region is the registration of the buffer. It is nil if the buffer is that of other Buffers, and if the
	// card must register the buffer itself.
	region *job.Region
	// iteration is the virtual time of an iteration of arithmetic, which world spends computing. It is zero in real
	// time.
	iteration time.Duration
	world     *world.World

	store     *store     // of the kind Tables, in place of all that
	messenger *messenger // of the kind Messages, in place of the window
}

// views are a window as memory of several types.
type views struct {
	bytes  *window.Window[byte]
	size   int // of the window
	floats *window.Window[float64]
	ints   *window.Window[int64]
	words  *window.Window[uint64]

	other int          // the other of ranks 0 and 1
	pair  window.Group // the other rank as a group
}

const firstSeed = 88172645463325252

// New makes Buffers for cells, which are all on a window or all on a hash table. unregistered is set if the
// buffer is not registered beforehand. It is collective.
func New(ctx context.Context, w *world.World, cells []Cell, options []window.Option, unregistered bool) (*Buffers, error) {
	b := &Buffers{seed: firstSeed, state: 1, world: w}
	if device.IsVirtual(w) {
		b.iteration = virtualIteration
	}
	if cells[0].Case.Kind == Tables {
		var err error
		b.store, err = newStore(ctx, w, "", options)
		return b, err
	}
	addends := 0
	for _, one := range cells {
		if one.Case.Each == 8 {
			addends = max(addends, one.Size/8)
		}
	}
	size, buffer := reachOf(cells)
	b.size, b.buffer = size, make([]byte, buffer)
	b.addends, b.sums = make([]float64, addends), make([]float64, addends)
	b.operands = make([]int64, 2)
	b.masks = make([]uint64, 1)
	if kind := cells[0].Case.Kind; kind == Collective || kind == Messages {
		return b, nil
	}
	if !unregistered {
		var err error
		if b.region, err = job.Of(w).Register(b.buffer, verbs.LocalWrite); err != nil {
			return b, err
		}
	}
	return b, b.allocate(ctx, w, options)
}

// ForCollectives makes Buffers for collectives of up to n bytes.
func ForCollectives(w *world.World, n int) *Buffers {
	return &Buffers{world: w, buffer: make([]byte, n), addends: make([]float64, n/8), sums: make([]float64, n/8)}
}

// Touch writes to the buffers, so that no page fault occurs in a timed loop.
func (b *Buffers) Touch() {
	clear(b.buffer)
	clear(b.addends)
	clear(b.sums)
}

// WithNewWindow makes Buffers with their own window or hash table, and the buffers or keys of b. It is collective.
func (b *Buffers) WithNewWindow(ctx context.Context, w *world.World, options []window.Option) (*Buffers, error) {
	other := *b
	other.region = nil
	if b.store != nil {
		var err error
		other.store, err = newStore(ctx, w, b.store.keys, options)
		return &other, err
	}
	return &other, other.allocate(ctx, w, options)
}

// Connect connects the ranks for the messages of cells, over devices that open opens. It is collective.
func (b *Buffers) Connect(ctx context.Context, cells []Cell, open func() (verbs.Device, error), withoutPipes bool) error {
	longest := answerBytes
	for _, one := range cells {
		longest = max(longest, one.Size)
	}
	var err error
	b.messenger, err = newMessenger(ctx, b.world, open, b.buffer, channel.Options{MaxMessage: longest, WithoutPipes: withoutPipes})
	return err
}

// allocate makes the window and its views.
func (b *Buffers) allocate(ctx context.Context, w *world.World, options []window.Option) error {
	var err error
	if b.bytes, err = window.Allocate[byte](ctx, w, b.size, options...); err != nil {
		return err
	}
	var failures [4]error
	b.floats, failures[0] = window.View[float64](b.bytes)
	b.ints, failures[1] = window.View[int64](b.bytes)
	b.words, failures[2] = window.View[uint64](b.bytes)
	if w.Rank() < 2 {
		b.other = 1 - w.Rank()
		b.pair, failures[3] = b.bytes.Group(b.other)
	}
	return errors.Join(failures[:]...)
}

// Close frees the window, the registration and the connection. It is collective.
func (b *Buffers) Close() error {
	if b.store != nil {
		return b.store.table.Close()
	}
	if b.messenger != nil {
		return b.messenger.close()
	}
	if b.bytes == nil {
		return nil
	}
	err := b.bytes.Close()
	if b.region != nil {
		err = errors.Join(err, b.region.Deregister())
	}
	return err
}

// virtualIteration is the time of six dependent instructions at 3 GHz.
const virtualIteration = 2 * time.Nanosecond

// compute keeps the processor busy for a number of iterations of arithmetic.
func (b *Buffers) compute(iterations int) {
	if b.iteration > 0 {
		b.world.Compute(time.Duration(iterations) * b.iteration)
		return
	}
	arithmetic(&b.state, iterations)
}

// Begin brings every rank into the synchronization of a kind.
func (b *Buffers) Begin(ctx context.Context, kind Kind) error {
	switch kind {
	case Passive:
		return b.bytes.LockAll(ctx)
	case Fence:
		return b.bytes.Fence(ctx)
	}
	return nil
}

// End brings every rank out of the synchronization of a kind.
func (b *Buffers) End(ctx context.Context, kind Kind) error {
	switch kind {
	case Passive:
		return b.bytes.UnlockAll(ctx)
	case Fence:
		return b.bytes.Fence(ctx, window.NoSucceed)
	case Messages:
		// The connection must not be closed before the peer has accepted it.
		return b.world.Barrier(ctx)
	}
	return nil
}

// spot returns a random element of the window, by xorshift.
func (b *Buffers) spot() int {
	s := b.seed
	s ^= s << 13
	s ^= s >> 7
	s ^= s << 17
	b.seed = s
	return int(s % (windowBytes / 8))
}

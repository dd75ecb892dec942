package window

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/latch"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/world"
)

// Element is what windows are made of: numbers, and types that are defined as one. An int, a uint or a uintptr is as an
// integer of its size, which is the same on every rank.
//
// A struct or an array is none. Of fields of one type make a window of that type, with as many elements for each struct. Of
// fields of several types make a window of bytes and encode the fields (encoding/binary), or look at the same
// memory as each of the types (View). A bool goes as a uint8.
type Element interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// Op is an operation of the accumulate family. Min and Max are not for complex
// elements; And, Or and Xor are for integers only.
type Op = reduce.Op

// The operations of the accumulate family.
const (
	Sum     = reduce.Sum
	Product = reduce.Product
	Min     = reduce.Min
	Max     = reduce.Max
	And     = reduce.And
	Or      = reduce.Or
	Xor     = reduce.Xor
	Replace = reduce.Replace
	NoOp    = reduce.NoOp
)

// A Window is memory that every rank of a job exposes to the others, as elements
// of type T. Its methods may be called from any goroutine; operations from
// several goroutines may share an epoch.
type Window[T Element] struct {
	// A copy would be another window over the same epochs: go vet finds it.
	_ noCopy
	untyped
	view  view
	local []T
}

// untyped has the methods that do not depend on the type of the elements. It embeds no core: each type of Window would have
// all methods of that once more.
type untyped struct {
	core *core
}

// noCopy has go vet take what has it for a lock, which is not to be copied.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// A view is a window as elements of one kind. The operations are its methods, not
// those of Window, so that there is one body for all element types, compiled
// here with what it needs of other packages built in; in a body compiled where
// a program names its type the compiler builds in only what the program imports
// itself.
type view struct {
	*core
	kind    reduce.Kind
	shift   uint8 // an element has 1 << shift bytes
	kernels *kernels
	targets []target
}

// A target is what an operation needs to know of one rank. memory is nil until
// the first operation on that rank, when the rank has failed, and where it cannot
// be mapped. Where operations are watched it is nil always, so that they all go the long way, which
// goes by data. count is in elements. stripes is valid when data is not nil. queue is for operations
// on a rank that is reached over a link, nil likewise.
type target struct {
	memory  atomic.Pointer[byte]
	data    atomic.Pointer[byte]
	queue   atomic.Pointer[deferred]
	count   int
	stripes stripes
}

// core is what a window and its views share.
type core struct {
	raceOrder
	// world is the job, and face the World of it that the program knows.
	world *job.World
	face  *world.World
	// now is its clock.
	now   func() time.Duration
	rank  int
	size  int
	hints settings
	// host is the window of which this rank's part has the control block: this one, but for
	// the end of a client's in the process that serves it, which has a seat there.
	host  *core
	seat  int
	seats seats
	turns mappersTurns
	// visited is where the window was attached to, nil for one that this rank's job made.
	visited *visitor

	// mu serializes the synchronization calls' changes of epochs; operations
	// read the access words of epochs without it.
	mu     latch.Latch
	epochs *epoch.State
	// unchecked tells that the epoch of LockAll has no locks. mu guards it.
	unchecked bool

	// unfinished: a context has cut Close short. abandoned: the World is closed. mu guards them.
	unfinished, abandoned bool

	// meeting is the barrier of Fence. broken is why one has failed, after which it
	// cannot be used: others may have passed it. It is a *world.PeerError or a *MismatchError. mu guards broken.
	meeting *job.Meeting
	broken  error

	// own is this rank's peer entry; peers[r] is nil until rank r is needed.
	own     *peer
	peers   []atomic.Pointer[peer]
	exposed []exposure

	// here[r]: rank r is a goroutine of this process.
	here []atomic.Bool
	// lockWord is what this rank's locks hold.
	lockWord uint32
	// number is the window's in messages, the same on every rank.
	number uint32
	// remote: some ranks are reached by messages.
	remote bool
	// reach is how ranks that share memory reach each other's parts.
	reach reach
	// granted[r] is the ticket of the last lock that rank r has granted by a
	// message, tickets[r] of the last that this rank asked it for.
	granted []atomic.Uint32
	tickets []atomic.Uint32
	// posted[r] is the number of this rank's last post to rank r.
	posted  []atomic.Uint32
	locking *locking
	server  *server
	// native says that the accumulate family uses atomic instructions.
	native bool
	// cards is what network cards do of it.
	cards   cardUse
	tallies tallies
	// held are the accumulates that are held back, if far: some parts are large
	// enough for that.
	held heldBack
	far  bool
	// watch is nil where nobody is told of operations.
	watch *watch
	// chosenOp is 1 + the operation that SameOp has settled on.
	chosenOp atomic.Uint32
	// consumed[i] counts the notifications of slot i that were waited for.
	consumed []atomic.Uint64

	// views are the window as elements of each type that was asked for, by a nil
	// *Window of it. They have ranks to forget: viewsMu also guards the writing of
	// their targets.
	viewsMu sync.Mutex
	// forgotten are ranks that have failed meanwhile, or are about to be known to have.
	forgotten map[int]bool
	views     map[any]interface{ part(rank int) *target }

	closed atomic.Bool
	// readers counts the calls that abandon waits for before the memory is freed: those that read the own control block outside of
	// epochs, Fence and Close.
	readers       atomic.Int32
	release       func() error
	stopListening func()
	// stopWaitingForEnd is of the end of the World.
	stopWaitingForEnd func()
}

// A peer is one rank's part of the window as this process reaches it: mapped, by
// system calls, or over a link.
type peer struct {
	// control is without a base if it is not mapped: the rank is told by messages.
	control control
	// link, if it is not nil, is the way to the data, or, if that is mapped, to the card's atomics.
	link *job.Link
	// deferred are the operations that were not sent over the link.
	deferred *deferred
	// data is the window memory, nil if it is not mapped.
	data []byte
	// neighbor serves the rest, from region.
	neighbor verbs.Neighbor
	region   verbs.RemoteRegion
	// block is the memory of control.
	block []byte
	// late is how its agents have left turns at the lock unused. The one call of this rank that locks it exclusively has it.
	late lateness
}

// Allocate makes a window of count zeroed elements on this rank, outside the Go
// heap. It is collective: every rank of w calls it with the same T and options;
// counts may differ, and be 0. It blocks until all have. Every rank gets an
// error if one has: a *MismatchError, a *CreateError or a *world.PeerError.
//
// The memory is committed: all of it has its pages before the call returns, which takes seconds for many GiB, and what the
// machine or a control group does not have free is an error that wraps verbs.ErrMemory. With [Sparse] it is only reserved.
//
// With the context's error it has not ended: the other ranks may get the window, and
// use it. The same call, made again, goes on; until then every other collective call
// on w is a world.ErrUnfinished.
func Allocate[T Element](ctx context.Context, w *world.World, count int, options ...Option) (*Window[T], error) {
	return create[T](ctx, w, arguments{call: "Allocate", count: count}, options, func() (part, error) { return allocatePart(jobOf(w), count, reduce.KindOf[T]()) })
}

// Create makes a window over the program's own memory, which belongs to the
// window until it is closed. Otherwise it is as Allocate. Ranks in other
// processes of the host reach the memory by system calls, and where those are not
// permitted by messages, which this rank serves: that is slower, and the same.
func Create[T Element](ctx context.Context, w *world.World, memory []T, options ...Option) (*Window[T], error) {
	a := arguments{call: "Create", count: len(memory)}
	if len(memory) > 0 {
		a.memory = &bytesOf(memory)[0]
	}
	return create[T](ctx, w, a, options, func() (part, error) { return ownPart(jobOf(w), bytesOf(memory)) })
}

// View gives the same window as elements of another type: the same memory, the
// same epochs. Displacements count elements of U. Every rank's part must be a
// whole number of them. A view is closed by closing the window it was made of. Views as
// the same type are the same.
func View[U, T Element](win *Window[T]) (*Window[U], error) {
	if win == nil {
		return nil, fmt.Errorf("window: View: %w: nil Window", ErrArgument)
	}
	if win.core.closed.Load() {
		return nil, fmt.Errorf("window: View: %w", ErrClosed)
	}
	kind := reduce.KindOf[U]()
	for rank := range win.core.exposed {
		d := &win.core.exposed[rank]
		if d.bytes%uint64(kind.Size()) != 0 {
			return nil, fmt.Errorf("window: View as %v: %w: rank %d exposes %s, which is no multiple of the %d of an element", kind, ErrAlignment, rank, errtext.Count(d.bytes, "byte"), kind.Size())
		}
		// A complex128 is two words of 8 bytes.
		if need := min(kind.Size(), 8); int(d.alignment) < need {
			return nil, fmt.Errorf("window: View as %v: %w: rank %d's memory is at a multiple of %s, elements need %d", kind, ErrAlignment, rank, errtext.Count(d.alignment, "byte"), need)
		}
	}
	return windowOver[U](win.core), nil
}

// windowOver is the window as elements of T, of which there is one; the sizes have been
// checked.
func windowOver[T Element](c *core) *Window[T] {
	c.viewsMu.Lock()
	defer c.viewsMu.Unlock()
	key := (*Window[T])(nil)
	if made := c.views[key]; made != nil {
		return made.(*Window[T])
	}
	kind := reduce.KindOf[T]()
	win := &Window[T]{
		untyped: untyped{c},
		view: view{
			core: c, kind: kind, shift: uint8(bits.TrailingZeros(uint(kind.Size()))),
			kernels: c.kernelsOf(kind), targets: make([]target, c.size),
		},
		local: elements[T](c.own.data),
	}
	for rank := range win.view.targets {
		win.view.targets[rank].count = int(c.exposed[rank].bytes) / kind.Size()
	}
	c.views[key] = win
	return win
}

// forget makes every operation on rank, which is about to be known to have failed, take the long way,
// where it is refused.
func (c *core) forget(rank int) {
	c.viewsMu.Lock()
	defer c.viewsMu.Unlock()
	if c.forgotten == nil {
		c.forgotten = make(map[int]bool)
	}
	c.forgotten[rank] = true
	c.hide(rank)
}

// hide has the short way to rank closed. It is called with the mutex of the views.
func (c *core) hide(rank int) {
	for _, win := range c.views {
		win.part(rank).memory.Store(nil)
		win.part(rank).data.Store(nil)
		win.part(rank).queue.Store(nil)
	}
}

// part is what a view knows of a rank.
func (w *Window[T]) part(rank int) *target { return &w.view.targets[rank] }

// Local is this rank's part of the window. It is valid until Close, or until the World
// is closed, which closes the window.
func (w *Window[T]) Local() []T { return w.local }

// Len is how many elements rank exposes; 0 for a rank the job does not have.
func (w *Window[T]) Len(rank int) int {
	if uint(rank) >= uint(len(w.view.targets)) {
		return 0
	}
	return w.view.targets[rank].count
}

// World is the job of the window.
func (w *untyped) World() *world.World { return w.core.face }

// jobOf returns what package window works with of a World.
func jobOf(w *world.World) *job.World { return job.Of(w) }

// Group makes a group of ranks of this window for Start and Post. A rank that
// does not exist or is named twice is an error.
func (w *untyped) Group(ranks ...int) (Group, error) {
	c := w.core
	group, err := epoch.NewGroup(c.size, ranks...)
	if err != nil {
		return Group{}, errtext.Errorf("window: Group: %w", err)
	}
	return group, nil
}

// Group is a set of ranks for Start and Post, which the method Group of a Window makes.
type Group = epoch.Group

// peer gives rank's part of the window, mapping it at first use.
func (c *core) peer(rank int) (*peer, error) {
	if p := c.peers[rank].Load(); p != nil {
		return p, nil
	}
	p, err := c.mapPeer(rank)
	if errors.Is(err, verbs.ErrPeerGone) {
		// The World may not have heard of it yet.
		return nil, &job.PeerError{Rank: rank, Cause: err}
	}
	return p, err
}

func (c *core) mapPeer(rank int) (*peer, error) {
	d := &c.exposed[rank]
	if !c.world.Mapped(rank) {
		link, err := c.world.Link(rank)
		if err != nil {
			return nil, err
		}
		p := &peer{link: link, deferred: newDeferred(c, link, d.data, true)}
		c.peers[rank].CompareAndSwap(nil, p)
		return c.peers[rank].Load(), nil
	}
	neighbor, err := c.world.Neighbor(rank)
	if err != nil {
		return nil, err
	}
	block, err := neighbor.Map(d.control)
	if err != nil {
		return nil, err
	}
	l := layoutOf(c.size, c.hints.seats, d.bytes, c.hints.slots)
	if uintptr(len(block)) < l.bytes || alignmentOf(block) < lineBytes {
		return nil, fmt.Errorf("window: control block of rank %d: %w: %s at a multiple of %d, not %d at one of %d", rank, errDescription, errtext.Count(len(block), "byte"), alignmentOf(block), l.bytes, lineBytes)
	}
	p := &peer{control: controlOver(block, l), neighbor: neighbor, region: d.data, block: block}
	switch {
	case d.bytes == 0:
		p.data = []byte{}
	case c.reach == reachMapped:
		if p.data, err = neighbor.Map(p.region); err == nil {
			err = d.checkMapped(p.data)
		}
		if err != nil {
			return nil, errtext.Errorf("window: memory of rank %d: %w", rank, err)
		}
	case c.reach == reachMessages:
		if p.link, err = c.world.Link(rank); err != nil {
			return nil, err
		}
		p.deferred = newDeferred(c, p.link, p.region, false)
	}
	// Two goroutines may come here at once. Either entry is good.
	c.peers[rank].CompareAndSwap(nil, p)
	return c.peers[rank].Load(), nil
}

// reach gives the peer of an operation on elements [displacement, displacement +
// count) of target, or says why the operation is refused. It is the way of every
// operation that did not pass the short check.
func (v *view) reach(op string, target, displacement, count int) (*peer, error) {
	refuse := func(cause error) (*peer, error) {
		return nil, &OpError{Op: op, Target: target, Displacement: displacement, Count: count, Cause: cause}
	}
	if uint(target) >= uint(v.size) {
		return refuse(fmt.Errorf("%w: %s", ErrRank, errtext.Allowed(v.size-1)))
	}
	if !v.epochs.Open(target) {
		return refuse(v.whyClosed(op, target))
	}
	t := &v.targets[target]
	if displacement < 0 {
		if count > t.count {
			return refuse(fmt.Errorf("%w: negative displacement, and it has %s", ErrArgument, errtext.Count(t.count, "element")))
		}
		return refuse(fmt.Errorf("%w: negative displacement, %s", ErrArgument, errtext.Allowed(t.count-count)))
	}
	if count > t.count || displacement > t.count-count {
		if count > t.count {
			return refuse(fmt.Errorf("%w: it has %s", ErrRange, errtext.Count(t.count, "element")))
		}
		return refuse(fmt.Errorf("%w: it has %s, so %s", ErrRange, errtext.Count(t.count, "element"), errtext.Allowed(t.count-count)))
	}
	if err := v.world.Failure(target); err != nil {
		return refuse(err)
	}
	p, err := v.peer(target)
	if err != nil {
		return refuse(err)
	}
	switch {
	case p.data != nil:
		if t.data.Load() == nil {
			v.reveal(t, p, target)
		}
	case p.deferred != nil && v.watch == nil && !v.hints.cardAtomics && t.queue.Load() == nil:
		v.reveal(t, p, target)
	}
	return p, nil
}

// reveal lets operations take the short way to target. Several goroutines may come
// here at once, and a failure or Close that wants the target forgotten.
func (v *view) reveal(t *target, p *peer, target int) {
	v.viewsMu.Lock()
	defer v.viewsMu.Unlock()
	if t.data.Load() != nil || v.closed.Load() || v.forgotten[target] || v.world.Failure(target) != nil {
		return
	}
	if p.data == nil {
		if !v.hints.readOnly {
			t.queue.Store(p.deferred)
		}
		return
	}
	t.stripes = stripesOf(&p.control)
	t.stripes.far = v.far && len(p.data) >= farBytes
	t.data.Store(first[byte](p.data))
	if v.watch == nil {
		t.memory.Store(first[byte](p.data))
	}
}

func (c *core) whyClosed(op string, target int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epochs.Refuse(op, target)
}

// checkedBytes is count elements of kind in bytes.
func checkedBytes(count int, kind reduce.Kind) (int, error) {
	if count < 0 {
		return 0, fmt.Errorf("%w: count %d must not be negative", ErrArgument, count)
	}
	if count > math.MaxInt/kind.Size() {
		return 0, fmt.Errorf("%w: %d elements of %s are more than an address holds", ErrArgument, count, errtext.Count(kind.Size(), "byte"))
	}
	return count * kind.Size(), nil
}

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

// An Element is the type of a window's elements: a number, or a type that is defined as one. An int, uint or uintptr
// counts as the integer of its size. The size is the same on every rank.
//
// Structs and arrays are not elements. Structs with fields of one type fit a window of that type, with several elements
// for each struct. For fields of several types, encode the fields into a window of bytes (encoding/binary), or use a
// [View] of each type. Store a bool as a uint8.
type Element interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64 | ~complex64 | ~complex128
}

// An Op is an operation of the accumulate family. Min and Max are for integers and floats; And, Or and Xor are for
// integers. Integers wrap around. Min and Max of floats are those of Go.
type Op = reduce.Op

// The operations of the accumulate family. Replace stores the operand. NoOp changes nothing: it reads.
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

// A Window is memory that every rank of a job exposes to the others, as elements of type T. A Window comes from
// [Allocate], [Create], [View] or [Attach].
//
// For a nil Window and for the zero Window, calls that return an error return an [ErrArgument]; only Put and Get of a
// nil Window panic. Local, World and Stats panic. Len returns 0, and Mapped false.
//
// Its methods may be called from any goroutine. Operations of several goroutines may share an epoch. The program orders
// them before the call that ends the epoch.
type Window[T Element] struct {
	// go vet reports a copy, which would share the epochs of the original.
	_ noCopy
	untyped
	view  view
	local []T
}

// calls returns the methods that do not depend on the element type. Those of a nil Window are like those of the zero
// Window.
func (w *Window[T]) calls() *untyped {
	if w == nil {
		return &noWindow
	}
	return &w.untyped
}

// of returns the view of a Window. That of a nil Window has no core, like that of the zero Window. Operations
// find that out in their slow path. Put and Get take w.view, because programs would not inline them otherwise.
func (w *Window[T]) of() *view {
	if w == nil {
		return &noView
	}
	return &w.view
}

var (
	noWindow untyped
	noView   view
)

// mustBeMade panics in a method that returns no error, if no call has made its Window.
func (c *core) mustBeMade(method string) {
	if c == nil {
		panicUnmade(method)
	}
}

// panicUnmade is a function without type parameters: programs inline Local.
func panicUnmade(method string) { panic(unmade(method).Error()) }

// untyped has the methods that do not depend on the element type. It does not embed core: each instantiation of Window
// would otherwise have all methods of core once more.
type untyped struct {
	core *core
}

// noCopy makes go vet report copies: vet treats a type with Lock and Unlock as a lock.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// A view is a window as elements of one kind. The operations are methods of view, so that one body serves all element
// types and is compiled in this package. A generic method of Window is compiled where the program names its type. There
// the compiler inlines only functions of packages that the program imports itself.
type view struct {
	*core
	kind    reduce.Kind
	shift   uint8 // an element has 1 << shift bytes
	kernels *kernels
	targets []target
}

// A target is what an operation needs to know of one rank.
//
// memory is nil until the first operation on the rank, after the rank has failed, and if its part cannot be mapped. If
// operations are watched, memory is always nil: all operations then take the slow path, which uses data. data is nil in
// the other cases, too. stripes is valid if data is not nil.
//
// queue is for a rank that is reached over a link. It is nil in the same cases. count is in elements.
type target struct {
	memory  atomic.Pointer[byte]
	data    atomic.Pointer[byte]
	queue   atomic.Pointer[deferred]
	count   int
	stripes stripes
}

// A core is the state that a window and its views share.
type core struct {
	raceOrder
	// world is the job, and face the public World that the program passed.
	world *job.World
	face  *world.World
	// now is the clock of world.
	now   func() time.Duration
	rank  int
	size  int
	hints settings
	// host is the window whose control block this rank's part uses. That is this window, except for the server's end of
	// a client's window: it uses the served window, in the client's seat.
	host  *core
	seat  int
	seats seats
	turns mappersTurns
	// visited is the session over which the window was attached; nil for a window of this rank's own job.
	visited *visitor

	// mu serializes the changes that synchronization calls make to epochs. Operations read the access words of epochs
	// without it.
	mu     latch.Latch
	epochs *epoch.State
	// unchecked is set if the open LockAll epoch holds no locks (NoCheck). mu guards it.
	unchecked bool

	// unfinished is set after a context has ended Close early, abandoned after the World is closed. mu guards both.
	unfinished, abandoned bool

	// meeting is the barrier of Fence. broken is the error of a failed Fence, a *world.PeerError or a *MismatchError.
	// Other ranks may have passed that Fence, so meeting cannot be used afterwards. mu guards broken.
	meeting *job.Meeting
	broken  error
	// unlocking, completing and posting have what an interrupted UnlockAll, Complete or Post has still to return.
	unlocking, completing, posting keptErrors

	// own is this rank's peer entry. peers[r] is nil until rank r is needed.
	own     *peer
	peers   []atomic.Pointer[peer]
	exposed []exposure

	// here[r] is set if rank r is a goroutine of this process.
	here []atomic.Bool
	// lockWord is the value with which this rank marks the lock words that it holds.
	lockWord uint32
	// number identifies the window in messages. It is the same on every rank.
	number uint32
	// remote is set if some ranks are reached by messages.
	remote bool
	// reach is the access path of ranks that share memory to each other's parts.
	reach reach
	// tickets[r] is the ticket of this rank's last request to rank r, granted[r] the last ticket that rank r has
	// granted by a message.
	granted []atomic.Uint32
	tickets []atomic.Uint32
	// posted[r] is the number of this rank's last post to rank r.
	posted  []atomic.Uint32
	locking *locking
	server  *server
	// native is set if the accumulate family uses atomic instructions.
	native bool
	// cards says which part of the accumulate family network cards execute.
	cards   cardUse
	tallies tallies
	// held is the batch of accumulates that are deferred on mapped memory. far is set if some part is large enough for
	// that.
	held heldBack
	far  bool
	// watch is nil if operations are neither counted nor passed to a hook nor checked for misuse.
	watch *watch
	// chosenOp is 1 + the operation that this rank uses under SameOp, or 0 before the first one.
	chosenOp atomic.Uint32
	// consumed[i] counts the notifications of slot i that WaitNotify and TestNotify have taken.
	consumed []atomic.Uint64

	// views are the views of the window, keyed by a nil *Window of the element type. viewsMu guards the map and the
	// writes to the targets of each view.
	viewsMu sync.Mutex
	// forgotten are the ranks that have failed, including those whose failure is about to become known.
	forgotten map[int]bool
	views     map[any]interface{ part(rank int) *target }

	closed atomic.Bool
	// readers counts the calls that must end before the memory is freed: Fence, Close, and calls that read this rank's
	// control block outside of epochs.
	readers       atomic.Int32
	release       func() error
	stopListening func()
	// stopWaitingForEnd removes the function that runs when the World is closed.
	stopWaitingForEnd func()
}

// A peer is one rank's part of the window as this process reaches it: mapped, by system calls, or over a link.
type peer struct {
	// control has a nil base if the control block is not mapped. The ranks then synchronize by messages.
	control control
	// link, if not nil, carries the operations on the data. If the data is mapped it carries atomics of the card only.
	link *job.Link
	// deferred are the operations that have not been sent over link.
	deferred *deferred
	// data is the window memory, or nil if it is not mapped.
	data []byte
	// neighbor reads and writes region by system calls, where neither data nor link does, and wakes the rank.
	neighbor verbs.Neighbor
	region   verbs.RemoteRegion
	// block is the memory of control.
	block []byte
	// late counts the turns at the exclusive lock that the rank's lock servers have missed. It belongs to the one call
	// of this rank that acquires that lock.
	late lateness
}

// Allocate makes a window of count zeroed elements on this rank, outside the Go heap. It is collective: every rank of w
// calls it, with the same T and options, and it returns when all have. The counts may differ and may be 0. If one rank
// gets an error, every rank gets one: a *MismatchError, a *CreateError or a *world.PeerError.
//
// All pages of the memory are backed before Allocate returns, which takes seconds for many GiB. If the machine or its
// control group has too little free memory, the error wraps verbs.ErrMemory. With [Sparse] the memory is only reserved.
//
// If ctx ends first, the call is unfinished: other ranks may have the window and may use it. The same call continues
// it. Until then another collective call on w may return world.ErrUnfinished.
func Allocate[T Element](ctx context.Context, w *world.World, count int, options ...Option) (*Window[T], error) {
	return create[T](ctx, w, arguments{call: "Allocate", count: count}, options, func() (part, error) { return allocatePart(jobOf(w), count, reduce.KindOf[T]()) })
}

// Create makes a window over memory of the program, which belongs to the window until it is closed. Otherwise Create is
// like [Allocate].
//
// Ranks in other processes of this host reach the memory by system calls. If those are not permitted, they send
// messages that this rank serves. Both are slower than mapped memory and have the same effect.
func Create[T Element](ctx context.Context, w *world.World, memory []T, options ...Option) (*Window[T], error) {
	a := arguments{call: "Create", count: len(memory)}
	if len(memory) > 0 {
		a.memory = &bytesOf(memory)[0]
	}
	return create[T](ctx, w, a, options, func() (part, error) { return ownPart(jobOf(w), bytesOf(memory)) })
}

// View returns the same window as elements of another type, with the same memory and the same epochs. Displacements
// count elements of U. The part of every rank must be a whole number of them, suitably aligned: otherwise View returns
// an [ErrAlignment].
//
// Views as the same type are the same Window. Closing one of them closes the window.
func View[U, T Element](win *Window[T]) (*Window[U], error) {
	if win == nil || win.core == nil {
		return nil, unmade("View")
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

// windowOver returns the one view of a window as elements of T. The caller has checked the sizes.
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

// forget makes every operation on rank take the slow path, which rejects it. The failure of rank is about to become
// known.
func (c *core) forget(rank int) {
	c.viewsMu.Lock()
	defer c.viewsMu.Unlock()
	if c.forgotten == nil {
		c.forgotten = make(map[int]bool)
	}
	c.forgotten[rank] = true
	c.hide(rank)
}

// hide closes the fast path to rank. The caller holds viewsMu.
func (c *core) hide(rank int) {
	for _, win := range c.views {
		win.part(rank).memory.Store(nil)
		win.part(rank).data.Store(nil)
		win.part(rank).queue.Store(nil)
	}
}

// part returns the target entry of a rank.
func (w *Window[T]) part(rank int) *target { return &w.view.targets[rank] }

// Local returns this rank's part of the window: for a window of [Create] the slice that was passed, for a window of
// [Attach] an empty slice. It is valid until Close of the window or of its World. Loads and stores follow the rules of
// the package: see Epochs.
func (w *Window[T]) Local() []T {
	if w == nil || w.core == nil {
		panicUnmade("Local")
	}
	return w.local
}

// Len returns the number of elements that rank exposes, or 0 if the job has no such rank.
func (w *Window[T]) Len(rank int) int {
	v := w.of()
	if uint(rank) >= uint(len(v.targets)) {
		return 0
	}
	return v.targets[rank].count
}

// World returns the World of the window.
func (w *Window[T]) World() *world.World { return w.calls().World() }

func (w *untyped) World() *world.World {
	w.core.mustBeMade("World")
	return w.core.face
}

// jobOf returns the job.World of a World.
func jobOf(w *world.World) *job.World { return job.Of(w) }

// Group returns a group of ranks of this window for Start and Post. It returns an [ErrGroup] if a rank does not exist
// or is named twice. An empty group is legal.
func (w *Window[T]) Group(ranks ...int) (Group, error) { return w.calls().Group(ranks...) }

func (w *untyped) Group(ranks ...int) (Group, error) {
	c := w.core
	if c == nil {
		return Group{}, unmade("Group")
	}
	group, err := epoch.NewGroup(c.size, ranks...)
	if err != nil {
		return Group{}, errtext.Errorf("window: Group: %w", err)
	}
	return group, nil
}

// A Group is a set of ranks for Start and Post. The method Group of a Window makes it.
type Group = epoch.Group

// peer returns rank's part of the window, and maps it at first use.
func (c *core) peer(rank int) (*peer, error) {
	if p := c.peers[rank].Load(); p != nil {
		return p, nil
	}
	p, err := c.mapPeer(rank)
	if errors.Is(err, verbs.ErrPeerGone) {
		// The World may not know of the failure yet.
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
	l := layoutOf(c.size, c.hints.Seats, d.bytes, c.hints.Slots)
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
	// Another goroutine may have stored an entry meanwhile. Either entry is good.
	c.peers[rank].CompareAndSwap(nil, p)
	return c.peers[rank].Load(), nil
}

// reach returns the peer for an operation on elements [displacement, displacement + count) of target, or the error that
// rejects the operation. Every operation that fails the check of the fast path comes here.
func (v *view) reach(op string, target, displacement, count int) (*peer, error) {
	if v.core == nil {
		return nil, unmade(op)
	}
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
	case p.deferred != nil && v.watch == nil && !v.hints.CardAtomics && t.queue.Load() == nil:
		v.reveal(t, p, target)
	}
	return p, nil
}

// reveal opens the fast path to target. Several goroutines may call it at the same time, and also at the same time as
// forget or shut. Those store forgotten or closed before they call hide under viewsMu, under which reveal loads both:
// so reveal sees them, or hide undoes reveal.
func (v *view) reveal(t *target, p *peer, target int) {
	v.viewsMu.Lock()
	defer v.viewsMu.Unlock()
	if t.data.Load() != nil || v.closed.Load() || v.forgotten[target] || v.world.Failure(target) != nil {
		return
	}
	if p.data == nil {
		if !v.hints.ReadOnly {
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
	return c.epochs.Reject(op, target)
}

// checkedBytes returns the size of count elements of kind in bytes.
func checkedBytes(count int, kind reduce.Kind) (int, error) {
	if count < 0 {
		return 0, fmt.Errorf("%w: count %d must not be negative", ErrArgument, count)
	}
	if count > math.MaxInt/kind.Size() {
		return 0, fmt.Errorf("%w: %d elements of %s are more than an address holds", ErrArgument, count, errtext.Count(kind.Size(), "byte"))
	}
	return count * kind.Size(), nil
}

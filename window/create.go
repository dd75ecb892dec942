package window

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/epoch"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/world"
)

// A part is one rank's memory of a window that is being made, and how to give it
// back.
type part struct {
	memory  []byte
	regions []*world.Region
	control []byte
	// allocated is memory to free; nil if the memory is the program's.
	allocated []byte
	device    verbs.Device
}

// description is what the ranks tell each other of their parts. It has no
// pointers and is exchanged as it is.
type description struct {
	call  uint32
	kind  uint32
	hints uint32
	slots uint32
	bytes uint64
	// alignment of the memory, in its rank's address space.
	alignment uint32
	data      world.Places
	control   world.Places
	reach     reach
	failed    bool
	// unsupported: the failure is an errors.ErrUnsupported.
	unsupported bool
	failure     [320]byte
}

// fail notes why the part cannot be had.
func (d *description) fail(cause error, text string) {
	d.failed = true
	d.unsupported = errors.Is(cause, errors.ErrUnsupported)
	d.failure = [len(d.failure)]byte{}
	copy(d.failure[:], text)
}

// A toldError is another rank's error.
type toldError struct {
	text        string
	unsupported bool
}

func (e *toldError) Error() string { return e.text }

func (e *toldError) Is(target error) bool { return e.unsupported && target == errors.ErrUnsupported }

const (
	hintSingleElement = 1 << iota
	hintSameOp
	hintUnordered
	hintImmediate
)

// create makes a window: every rank makes its part, then all tell each other of
// their parts, so that whatever went wrong on one rank is known on all before any
// returns.
func create[T Element](ctx context.Context, w *world.World, call string, options []Option, makePart func() (part, error)) (*Window[T], error) {
	s := settings{slots: DefaultNotifications}
	// Also where this rank can make no window: the others count too.
	number := w.NewNumber()
	var fault error
	for _, option := range options {
		if err := option(&s); err != nil {
			fault = errors.Join(fault, err)
		}
	}
	kind := reduce.KindOf[T]()
	mine := description{call: callNumber(call), kind: uint32(kind), hints: s.bits(), slots: uint32(s.slots)}
	var p part
	if fault == nil {
		p, fault = makePart()
	}
	if fault == nil {
		fault = p.addControl(w, s)
	}
	var c *core
	if fault == nil {
		mine.describe(&p)
		// Others may have the window, and send messages to this rank's part, before
		// this rank hears that they all agree.
		c, fault = newCore(w, number, s, &p, call == "Allocate")
	}
	all, err := agree(ctx, w, call, mine, fault)
	how := reachMapped
	if err == nil && call == "Create" {
		how, err = agreeOnReach(ctx, w, call, all)
	}
	if err == nil {
		err = c.open(all, how)
	}
	if err != nil {
		if c != nil {
			c.withdraw()
		}
		return nil, errors.Join(err, p.release())
	}
	return windowOver[T](c), nil
}

// newCore makes this rank's end of a window, which serves messages of others from
// now on.
func newCore(w *world.World, number uint32, s settings, p *part, allocated bool) (*core, error) {
	c := &core{
		world: w, rank: w.Rank(), size: w.Size(), hints: s, number: number,
		epochs:   epoch.New(w.Rank(), w.Size()),
		peers:    make([]atomic.Pointer[peer], w.Size()),
		granted:  make([]atomic.Uint32, w.Size()),
		tickets:  make([]atomic.Uint32, w.Size()),
		consumed: make([]atomic.Uint64, s.slots),
		release:  p.release,
	}
	c.lockWord = uint32(c.rank) + 1
	// Memory of the programs may have to be reached by system calls, which have no
	// atomic instructions. It must be known before the first message comes.
	c.native = s.singleElement && allocated
	neighbor, err := w.Neighbor(c.rank)
	if err != nil {
		return nil, err
	}
	c.own = &peer{control: controlOver(p.control, layoutOf(c.size, uint64(len(p.memory)), s.slots)), data: p.memory, neighbor: neighbor, block: p.control}
	if c.own.data == nil {
		c.own.data = []byte{}
	}
	c.peers[c.rank].Store(c.own)
	c.meeting = w.NewMeeting(c.number, p.control, func(rank int) ([]byte, error) {
		p, err := c.peer(rank)
		if err != nil {
			return nil, err
		}
		return p.block, nil
	})
	for rank := range c.size {
		c.remote = c.remote || !w.Mapped(rank)
	}
	c.server = newServer(c)
	return c, nil
}

// open completes the window with what the ranks have told each other.
func (c *core) open(all []description, how reach) error {
	c.descriptions, c.reach = all, how
	if how == reachMessages {
		c.remote = true
		c.world.KeepProgress()
	}
	c.stopListening = c.world.OnFailure(c.forget)
	return nil
}

// withdraw ends what newCore has begun.
func (c *core) withdraw() {
	c.server.stop()
	c.meeting.Close()
}

// agree exchanges the descriptions and finds the first rank that failed or
// differs.
func agree(ctx context.Context, w *world.World, call string, mine description, fault error) ([]description, error) {
	if fault != nil {
		mine.fail(fault, fault.Error())
	}
	all := make([]description, w.Size())
	if err := world.AllGather(ctx, w, []description{mine}, all); err != nil {
		return nil, errors.Join(fault, fmt.Errorf("window: %s: %w", call, err))
	}
	for rank := range all {
		d := &all[rank]
		switch want := &all[0]; {
		case d.call != want.call:
			return nil, &MismatchError{Call: call, What: "the call", Rank: rank, Value: callName(d.call), Want: callName(want.call)}
		case d.kind != want.kind:
			return nil, &MismatchError{Call: call, What: "element type", Rank: rank, Value: reduce.Kind(d.kind), Want: reduce.Kind(want.kind)}
		case !d.failed && !want.failed && d.hints != want.hints:
			return nil, &MismatchError{Call: call, What: "options (SingleElement 1, SameOp 2, Unordered 4, Immediate 8)", Rank: rank, Value: d.hints, Want: want.hints}
		case !d.failed && !want.failed && d.slots != want.slots:
			return nil, &MismatchError{Call: call, What: "Notifications", Rank: rank, Value: d.slots, Want: want.slots}
		}
	}
	return all, firstFailure(w, all, fault)
}

func firstFailure(w *world.World, all []description, fault error) error {
	if fault != nil {
		return &CreateError{Rank: w.Rank(), Cause: fault}
	}
	for rank := range all {
		if all[rank].failed {
			return &CreateError{Rank: rank, Cause: &toldError{text(all[rank].failure[:]), all[rank].unsupported}}
		}
	}
	return nil
}

func text(zeroEnded []byte) string {
	for i, b := range zeroEnded {
		if b == 0 {
			return string(zeroEnded[:i])
		}
	}
	return string(zeroEnded)
}

func (d *description) describe(p *part) {
	d.bytes = uint64(len(p.memory))
	d.alignment = uint32(alignmentOf(p.memory))
	d.control = p.regions[0].Places()
	if len(p.regions) > 1 {
		d.data = p.regions[1].Places()
	}
}

func (s *settings) bits() uint32 {
	var bits uint32
	if s.singleElement {
		bits |= hintSingleElement
	}
	if s.sameOp {
		bits |= hintSameOp
	}
	if s.unordered {
		bits |= hintUnordered
	}
	if s.immediate {
		bits |= hintImmediate
	}
	return bits
}

var calls = [...]string{"Allocate", "Create"}

func callNumber(call string) uint32 {
	for i, name := range calls {
		if name == call {
			return uint32(i)
		}
	}
	return uint32(len(calls))
}

func callName(number uint32) string {
	if int(number) < len(calls) {
		return calls[number]
	}
	return fmt.Sprintf("call %d", number)
}

const windowAccess = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead

// allocatePart makes this rank's part of count elements.
func allocatePart(w *world.World, count int, kind reduce.Kind) (part, error) {
	bytes, err := checkedBytes(count, kind)
	if err != nil || bytes == 0 {
		return part{}, err
	}
	device := w.Device()
	memory, err := device.AllocateMemory(bytes)
	if err != nil {
		return part{}, fmt.Errorf("allocating %d elements of %v, %d bytes: %w", count, kind, bytes, err)
	}
	return part{memory: memory[:bytes], allocated: memory, device: device}, nil
}

// ownPart makes this rank's part of the program's memory.
func ownPart(w *world.World, memory []byte) (part, error) {
	return part{memory: memory, device: w.Device()}, nil
}

// addControl allocates and registers the control block, and registers the memory.
func (p *part) addControl(w *world.World, s settings) error {
	p.device = w.Device()
	l := layoutOf(w.Size(), uint64(len(p.memory)), s.slots)
	block, err := p.device.AllocateMemory(int(l.bytes))
	if err != nil {
		return fmt.Errorf("allocating %d bytes of control block: %w", l.bytes, err)
	}
	p.control = block
	for _, memory := range [][]byte{block, p.memory} {
		if len(memory) == 0 {
			continue
		}
		region, err := w.Register(memory, windowAccess)
		if err != nil {
			return fmt.Errorf("registering %d bytes: %w", len(memory), err)
		}
		p.regions = append(p.regions, region)
	}
	return nil
}

// release gives everything back that the part has.
func (p *part) release() error {
	var err error
	for _, region := range p.regions {
		err = errors.Join(err, region.Deregister())
	}
	for _, memory := range [][]byte{p.control, p.allocated} {
		if memory != nil {
			err = errors.Join(err, p.device.FreeMemory(memory))
		}
	}
	*p = part{}
	return err
}

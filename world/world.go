package world

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/verbs"
)

// A World is one rank's membership in a job. Its methods may be called from any
// goroutine; collectives are called by all ranks in the same order, by one
// goroutine at a time.
type World struct {
	rank, size int
	device     verbs.Device
	mapper     verbs.Mapper
	channel    verbs.CompletionChannel
	logger     *slog.Logger
	roster     *roster
	// contact gives what rank told everyone of itself.
	contact func(ctx context.Context, rank int) (contact, error)

	crowded    bool
	spinRounds int
	// yield lets others run: those that this rank waits for.
	yield func()

	neighbors []atomic.Pointer[verbs.Neighbor]
	contacts  []atomic.Pointer[contact]

	block   []byte
	barrier *Meeting
	last    *Meeting
	number  uint32
	ledger  *ledger
	ledgers []atomic.Pointer[ledger]
	// judged is the verdict that has ended this rank's collectives.
	judged atomic.Pointer[verdict]
	// reported tells that all know of the first failure.
	reported atomic.Bool

	// collective is held by the goroutine that is in a collective.
	collective sync.Mutex
	// calls counts the collectives, barriers included, that are over.
	calls atomic.Uint32
	round round
	post  office

	closing sync.Once
	closed  atomic.Bool
	// finalize and end are what the way the job was made needs when it is over.
	finalize func() error
	end      func()
}

// A contact is what a rank tells the others of itself.
type contact struct {
	address string
	block   verbs.RemoteRegion
}

// An Option changes how a job is made or joined.
type Option func(*settings)

type settings struct {
	logger   *slog.Logger
	patience time.Duration
}

// WithLogger has the job report what is worth knowing. The default is silence,
// also for nil.
func WithLogger(logger *slog.Logger) Option {
	return func(s *settings) {
		if logger != nil {
			s.logger = logger
		}
	}
}

func newSettings(options []Option) settings {
	s := settings{logger: slog.New(slog.DiscardHandler), patience: DefaultPatience}
	for _, option := range options {
		if option != nil {
			option(&s)
		}
	}
	return s
}

// newWorld makes the World of a rank whose contact is not known yet, to which it
// returns it.
func newWorld(rank, size, cores int, device verbs.Device, roster *roster, s settings) (*World, contact, error) {
	w := &World{
		rank: rank, size: size, device: device, channel: device.Channel(), roster: roster, logger: s.logger,
		crowded:   size > cores,
		yield:     runtime.Gosched,
		neighbors: make([]atomic.Pointer[verbs.Neighbor], size),
		contacts:  make([]atomic.Pointer[contact], size),
		ledgers:   make([]atomic.Pointer[ledger], size),
		finalize:  func() error { return nil },
	}
	mapper, ok := device.(verbs.Mapper)
	if !ok {
		return nil, contact{}, &verbs.CapabilityError{Device: device.Attributes().Name, Capability: "map memory of peers", Reason: "ranks of this job must share memory"}
	}
	w.mapper = mapper
	if !w.crowded {
		w.spinRounds = int(device.Attributes().Spin / (spinRound * lookTime))
	}
	block, err := device.AllocateMemory(blockBytes)
	if err != nil {
		return nil, contact{}, fmt.Errorf("world: rank %d: %w", rank, err)
	}
	region, err := device.RegisterMemory(block, verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite)
	if err != nil {
		return nil, contact{}, fmt.Errorf("world: rank %d: %w", rank, err)
	}
	w.block = block
	w.ledger = ledgerOver(block[ledgerOffset:])
	w.ledgers[rank].Store(w.ledger)
	w.round.w = w
	w.barrier = w.NewMeeting(block[:MeetingBytes], func(rank int) ([]byte, error) {
		theirs, err := w.blockOf(rank)
		return theirs[:min(len(theirs), MeetingBytes)], err
	})
	w.last = w.NewMeeting(block[MeetingBytes:ledgerOffset], func(rank int) ([]byte, error) {
		theirs, err := w.blockOf(rank)
		return theirs[min(len(theirs), MeetingBytes):], err
	})
	w.last.last = true
	if err := w.post.open(w); err != nil {
		return nil, contact{}, fmt.Errorf("world: rank %d: %w", rank, err)
	}
	return w, contact{device.Address(), region.Remote()}, nil
}

// Rank is this rank's number, from 0.
func (w *World) Rank() int { return w.rank }

// Size is the number of ranks.
func (w *World) Size() int { return w.size }

// Device is the card that this rank has opened.
func (w *World) Device() verbs.Device { return w.device }

// Crowded tells that the machine runs more ranks of this job than it has cores, so
// that nobody should wait by spinning.
func (w *World) Crowded() bool { return w.crowded }

// contactOf is what rank told of itself, asked for once.
func (w *World) contactOf(rank int) (*contact, error) {
	if c := w.contacts[rank].Load(); c != nil {
		return c, nil
	}
	c, err := w.contact(context.Background(), rank)
	if err != nil {
		return nil, err
	}
	w.contacts[rank].Store(&c)
	return &c, nil
}

// Neighbor is the device of a rank whose memory can be mapped here, the own rank
// included. It is opened at first use.
func (w *World) Neighbor(rank int) (verbs.Neighbor, error) {
	if n := w.neighbors[rank].Load(); n != nil {
		return *n, nil
	}
	if err := w.Failure(rank); err != nil {
		return nil, err
	}
	c, err := w.contactOf(rank)
	if err != nil {
		return nil, err
	}
	n, err := w.mapper.Neighbor(c.address)
	if err != nil {
		return nil, w.blame(rank, err)
	}
	w.neighbors[rank].Store(&n)
	return n, nil
}

// blame makes the disappearance of a peer's device the failure of its rank.
func (w *World) blame(rank int, err error) error {
	if errors.Is(err, verbs.ErrPeerGone) {
		w.roster.fail(rank, err)
		return w.Failure(rank)
	}
	return err
}

// blockOf maps the block of flags of rank.
func (w *World) blockOf(rank int) ([]byte, error) {
	n, err := w.Neighbor(rank)
	if err != nil {
		return nil, err
	}
	c, err := w.contactOf(rank)
	if err != nil {
		return nil, err
	}
	block, err := n.Map(c.block)
	if err == nil && len(block) < blockBytes {
		err = fmt.Errorf("world: rank %d has a block of %d bytes, not %d", rank, len(block), blockBytes)
	}
	return block, err
}

// Ring wakes a rank that may sleep; see verbs.Neighbor.Ring.
func (w *World) Ring(rank int) {
	if n := w.neighbors[rank].Load(); n != nil {
		(*n).Ring()
	} else if n, err := w.Neighbor(rank); err == nil {
		n.Ring()
	}
}

// Barrier returns when every rank has called it. Everything that any rank did
// before is seen by all after.
func (w *World) Barrier(ctx context.Context) error {
	if err := w.enter(ctx, "Barrier"); err != nil {
		return err
	}
	defer w.collective.Unlock()
	r := &w.round
	if r.unfinished && r.signature.call != callBarrier {
		return r.refuse("Barrier")
	}
	r.op, r.unfinished = "Barrier", true
	r.signature = signature{call: callBarrier, number: w.calls.Load() + 1}
	r.history = r.signature.after(r.before)
	w.publish(&r.signature, nil)
	if err := w.barrier.meet(ctx, "Barrier", w.number+1, r.history); err != nil {
		return err
	}
	w.number++
	w.calls.Store(r.signature.number)
	r.unfinished, r.before = false, r.history
	return nil
}

// enter begins a collective, for one goroutine at a time.
func (w *World) enter(ctx context.Context, call string) error {
	switch {
	case w == nil:
		return fmt.Errorf("world: %s: %w: nil World", call, ErrArgument)
	case ctx == nil:
		return fmt.Errorf("world: %s: %w: nil context", call, ErrArgument)
	case !w.collective.TryLock():
		return fmt.Errorf("world: %s: %w in another goroutine of rank %d", call, ErrBusy, w.rank)
	}
	if err := w.ready(call); err != nil {
		w.collective.Unlock()
		return err
	}
	return nil
}

// ready tells why there can be no further collective.
func (w *World) ready(call string) error {
	if w.closed.Load() {
		return fmt.Errorf("world: %s: %w", call, ErrClosed)
	}
	return w.verdict(call, w.calls.Load()+1)
}

// Close leaves the job. It returns when every other rank has called it or failed,
// so that nothing of this rank's is needed any more. A second Close returns nil.
func (w *World) Close() error {
	var err error
	w.closing.Do(func() {
		w.closed.Store(true)
		w.post.drain()
		if w.Failures() != 0 {
			w.report(w.calls.Load() + 1)
		}
		w.barrier.leave()
		if w.last.Meet(context.Background(), "Close", 1) != nil {
			w.outlast()
		}
		err = w.depart()
	})
	return err
}

// outlast waits until every rank has left or failed: what the last meeting is for,
// but a rank that has failed does not come to it, and those that wait for it there
// do not know whether the others have.
func (w *World) outlast() {
	wait := w.NewWaiter()
	defer wait.Finish()
	for rank := 0; rank < w.size; {
		// A rank that cannot be reached any more has gone.
		_, err := w.barrier.block("Close", rank)
		_, left := w.barrier.left(rank)
		if left || err != nil || rank == w.rank || w.Failure(rank) != nil {
			rank++
			continue
		}
		_ = wait.Pause(context.Background())
	}
}

// depart ends this rank's membership without waiting for anyone.
func (w *World) depart() error {
	err := errors.Join(w.finalize(), w.device.Close())
	if w.end != nil {
		w.end()
	}
	return err
}

package world

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
)

// A World is one rank's membership in a job, or in a team of ranks of one. Its methods may be called from any goroutine.
// Collective methods are called by all ranks in the same order, by one goroutine of a rank at a time.
//
// By subject the methods are:
//
//   - Rank, Size, Others and InJob, the numbers of ranks
//   - Barrier, Split, Shrink, Close and CloseContext, which are collective
//   - Err, Failures and OnFailure, to continue without ranks that have failed
//   - Route, Mapped and Stats, to see how operations reach other ranks; Span, to mark parts of the program in a trace
//   - Now, Compute and Virtual, the time of the job
//
// A World comes from [Run], [Main], [Init], [New], [Simulate], [Dial], Split or Shrink. Calls return an [ErrArgument] for a nil World and
// for the zero World; methods that return no error panic.
type World struct {
	_ noCopy
	j *job.World
}

// noCopy makes go vet report copies, because vet treats a type with Lock and Unlock as a lock. A copy would not be the same World as
// its original.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// faceKey is the key under which a job.World keeps its World.
type faceKey struct{}

// of returns the World of a job.World, the same each time; nil for nil.
func of(j *job.World) *World {
	if j == nil {
		return nil
	}
	return j.Attached(faceKey{}, func() any { return &World{j: j} }).(*World)
}

// inner returns the job.World of a World: nil for nil, and one that no call takes for a World that a program has made.
func (w *World) inner() *job.World {
	switch {
	case w == nil:
		return nil
	case w.j == nil:
		return job.Unmade
	}
	return w.j
}

// made returns the job.World of a World for a method that returns no error. It panics if no call has made the World.
func (w *World) made(method string) *job.World {
	if w == nil || w.j == nil {
		panic("world: " + method + " of a World that no call of package world has made")
	}
	return w.j
}

// Package window sees the job.World of a World, and the job.Listener of a Listener.
func init() {
	job.SetFace(func(w any) *job.World {
		face, _ := w.(*World)
		return face.inner()
	}, func(l any) *job.Listener {
		face, _ := l.(*Listener)
		return face.inner()
	})
}

// Rank returns this rank's number, from 0.
func (w *World) Rank() int { return w.made("Rank").Rank() }

// Size returns the number of ranks: `for rank := range w.Size()` visits them in order.
func (w *World) Size() int { return w.made("Size").Size() }

// Others yields every rank but this one, starting with the next higher one. Ranks that all visit the others in this
// order do not all visit the same one first.
func (w *World) Others() iter.Seq[int] {
	size := w.made("Others").Size()
	return func(yield func(rank int) bool) {
		for step := 1; step < size; step++ {
			if !yield((w.Rank() + step) % size) {
				return
			}
		}
	}
}

// InJob returns the number in the job of a rank of this World, and -1 for one that this World does not have. The two differ in a team.
func (w *World) InJob(rank int) int {
	j := w.made("InJob")
	if !has(j, rank) {
		return -1
	}
	return j.InJob(rank)
}

func has(j *job.World, rank int) bool { return rank >= 0 && rank < j.Size() }

// Barrier returns when every rank has called it. Stores and complete operations of a rank before its call are visible to all
// ranks afterwards. Barrier does not complete operations: see window.Window.Flush.
func (w *World) Barrier(ctx context.Context) error { return w.inner().Barrier(ctx) }

// Split makes teams. Ranks that pass the same color form a team, ordered by key and then by their rank in w. A rank
// that passes a negative color gets nil. Split is collective, but each rank passes a color and a key of its own.
//
// A team is a World: it has collectives, windows can be allocated over it, and it can be split again. Its ranks are numbered from 0,
// also in errors, whose cause names the rank of the job ([World.InJob]). A team uses the devices of w. It makes connections
// of its own when they are first used. A team is closed as the World of a job is, after its windows. Ranks close teams that
// have ranks in common in the same order.
func (w *World) Split(ctx context.Context, color, key int) (*World, error) {
	j, err := w.inner().Split(ctx, color, key)
	return of(j), err
}

// Shrink makes a World of the ranks that have neither failed nor left, in the order of their ranks in w. It is collective among them.
// Windows of w are not changed, and w is closed as usual, before or after the new World. A rank that fails while the new World is made may
// be in it, as one that has failed: Shrink that World again.
//
// A rank in Shrink takes part in no other collective of w. Where another rank waits for it there, that call and every later
// collective of w fail with a [*PeerError]. The error names a rank that has failed, if there is one. Otherwise it is an [ErrLeft]
// that names the rank in Shrink. A rank that gets such an error calls Shrink, too, or closes w: the rank in Shrink waits for
// either. Fence and Close of windows are not ended, nor are collectives of teams: a rank that waits there continues to wait until
// its context ends.
//
// The new World needs as many file descriptors as w, in addition. A rank that has too few gets an error that wraps
// verbs.ErrShortage. The others wait until it calls Shrink again, or their contexts end.
//
// When ctx ends Shrink early, another Shrink continues it. An interrupted collective may read the memory that it sends from until a
// Shrink returns nil, or an error other than that of its context, ErrBusy and ErrClosed.
//
// When a network is cut in two, each side makes a World of the ranks that it reaches. The two stay apart when the network
// is whole again. The program decides which side may continue, for instance by the size of its World. A rank that the others
// left out, and that still hears of it, gets [ErrExcluded].
func (w *World) Shrink(ctx context.Context) (*World, error) {
	j, err := w.inner().Shrink(ctx)
	return of(j), err
}

// Close leaves the job, or the team. It returns when every other rank has called it or has failed. After that, no other rank
// needs this one. Closing the World of a job closes its open teams. Closing a team affects neither the
// job nor teams that were split from it.
//
// The error of Close says what could not be completed: operations of open epochs, the table of RMA_STATS, the trace, or the
// exchange with the process manager. On mapped memory operations are complete when they return, so an epoch that is still open is
// an error only with [WithDebug]. An open window is no error. Whatever Close returns, the World is closed, and a second Close
// returns nil.
func (w *World) Close() error { return w.inner().Close() }

// CloseContext is Close that waits for other ranks only until ctx ends. Its error then wraps that of ctx, and names a rank, or the
// process manager, that it waited for. The World takes no other calls from then on. Its memory and its
// connections stay while other ranks need them; those ranks are served as before.
// Another Close or CloseContext continues, and releases what is left. So does the end of the process, and that of the
// body of Run, Main or Simulate.
func (w *World) CloseContext(ctx context.Context) error { return w.inner().CloseContext(ctx) }

// Err returns nil, or the *[PeerError] of a rank that has failed. A rank that has left has not failed: it serves others until they
// have left, too. In a session (see [Dial]) the server counts as failed when it has ended the session; the cause is an [ErrLeft] or an
// [ErrEvicted]. A rank that this World does not have is an [ErrArgument].
func (w *World) Err(rank int) error {
	j := w.inner()
	switch err := job.Made(j, "Err"); {
	case err != nil:
		return err
	case !has(j, rank):
		return fmt.Errorf("world: Err: %w: rank %d, %s", ErrArgument, rank, errtext.Allowed(j.Size()-1))
	}
	return j.Failure(rank)
}

// Failures returns the failures so far, in the order in which this rank learned of them. As far as this rank knows, the first one
// caused the others. They must not be changed. Failures returns nil, at the cost of one load, while no rank has failed.
func (w *World) Failures() []*PeerError { return w.made("Failures").Failures() }

// OnFailure calls f with each failure from now on, in the order of Failures, until stop is called. Failures that are known already are
// not repeated: a program that calls OnFailure first and Failures then misses none.
//
// f runs in a goroutine of its own, and may make any call, Shrink and Close included. A call of f that has begun may outlast
// stop. In virtual time, where a rank is one task, f runs within a call of the rank that waits. There f may
// neither wait nor issue operations.
func (w *World) OnFailure(f func(*PeerError)) (stop func()) {
	return w.made("OnFailure").OnFailure(f)
}

// Route returns how this rank reaches another: such as "self", "shm, mapped" (memory that both map), "shm" (queue pairs in shared memory),
// "tcp" or "ibv" (RDMA cards); "sim" in virtual time. It is "" for a rank that this World does not have.
func (w *World) Route(rank int) string {
	j := w.made("Route")
	if !has(j, rank) {
		return ""
	}
	return j.Route(rank)
}

// Mapped reports whether this rank can map the memory of another rank of this World. It can map its own.
func (w *World) Mapped(rank int) bool {
	j := w.made("Mapped")
	return has(j, rank) && j.Mapped(rank)
}

// Now returns the time since a moment before the job began, on the clock of the job. That is real time. In real time the clocks of
// different ranks have different origins, and so has that of a World of Shrink: compare only times of one rank in one World. In a
// job of Simulate the time is the simulator's, and each rank has the time of its own processor.
func (w *World) Now() time.Duration { return w.made("Now").Now() }

// Compute keeps this rank's processor busy for d on the clock of Now. In real time the library makes progress meanwhile. In virtual
// time Compute does so whenever something arrives, and the time that this takes is added to d.
func (w *World) Compute(d time.Duration) { w.made("Compute").Compute(d) }

// Virtual reports whether the time of this World is that of a simulator: see [Simulate].
func (w *World) Virtual() bool { return w.made("Virtual").Virtual() }

// Span adds a span of the program, from and until on the clock of [World.Now], to the trace of this rank, which is that of
// [WithTrace]. In virtual time it is the trace that the simulator had when the job began. Spans of one goroutine are disjoint or
// nested. Without a trace Span does nothing.
func (w *World) Span(name string, from, until time.Duration) {
	w.made("Span").Span(name, from, until)
}

// Register registers a buffer that operations use often with the network cards of this rank, until stop is called. The program
// calls stop after the last operation on the buffer is complete. Close of the World ends the registration, too. A second stop, and
// one after Close, return nil.
//
// The registration keeps buffer alive until stop. Where the devices need no registration it costs little and changes nothing.
// Without Register the library registers frequently used buffers by itself.
//
// Register returns an [ErrArgument] for a nil World and for the zero World, and an [ErrClosed] for a closed one. If a device cannot
// register buffer, Register returns its error, such as a *verbs.CapabilityError.
func Register[T Element](w *World, buffer []T) (stop func() error, err error) {
	return job.RegisterElements(w.inner(), buffer)
}

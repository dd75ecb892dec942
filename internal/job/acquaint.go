package job

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/errtext"
)

// To map memory of a process for the first time takes an answer of it, which one that is stopped does not
// give. So nobody waits for that answer but an operation, which has no context: a goroutine aside gets
// acquainted, over before the World is, and tries again as long as somebody wants it and none comes.

// An acquaintance is that of this rank with a process.
type acquaintance struct {
	// begun tells that a goroutine asks for it, refused that the last one found that it cannot be. ring has it wake
	// the process once they are.
	begun, refused, ring atomic.Bool
	// again is from when on another may ask, on the clock of the World.
	again atomic.Int64
}

// askApart is how far apart they begin, as long as none is successful.
const askApart = 100 * time.Millisecond

// An aside is the goroutines of a World that wait for answers of processes, which it outlasts.
type aside struct {
	mu   sync.Mutex
	over bool
	// running counts those that wait for each rank.
	running map[int]int
	// idle is made when one begins, and closed when the last has ended.
	idle chan struct{}
}

// start has f, which waits for a rank, called by one of them, unless the World is at its end.
func (a *aside) start(rank int, f func()) (started bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return false
	}
	if len(a.running) == 0 {
		a.running, a.idle = make(map[int]int), make(chan struct{})
	}
	a.running[rank]++
	go func() {
		defer a.ended(rank)
		f()
	}()
	return true
}

// isOver reports whether none will begin any more.
func (a *aside) isOver() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over
}

func (a *aside) ended(rank int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running[rank]--; a.running[rank] == 0 {
		delete(a.running, rank)
	}
	if len(a.running) == 0 {
		close(a.idle)
	}
}

// wait returns when there were none.
func (a *aside) wait() { _ = a.waitIn(context.Background()) }

// waitIn is wait that ends with ctx, too, by an error that names a rank which has not answered.
func (a *aside) waitIn(ctx context.Context) error {
	a.mu.Lock()
	running, idle := len(a.running), a.idle
	a.mu.Unlock()
	if running == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.running) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", errtext.Ended(ctx), unmet(slices.Min(slices.Collect(maps.Keys(a.running)))))
}

// unmet is what an error says of a rank for whose answer a call has waited in vain.
func unmet(rank int) string {
	return fmt.Sprintf("rank %d, which this one has not met yet, does not answer", rank)
}

// end returns when there are none any more.
func (a *aside) end() {
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	a.wait()
}

// stranger tells whether a rank is a process that shares memory with this one, and was never met.
func (w *World) stranger(rank int) bool {
	if w != w.root {
		rank, w = w.inJob[rank], w.root
	}
	return rank != w.rank && w.apart && w.maps(rank) && w.neighbors[rank].Load() == nil
}

// Acquainted tells whether this rank can look at the memory of another that it maps, or that does not come into question. If not
// it will, once that has answered: the next look finds it.
func (w *World) Acquainted(rank int) bool {
	if !w.stranger(rank) {
		return true
	}
	if w != w.root {
		rank, w = w.inJob[rank], w.root
	}
	a, now := &w.acquaintances[rank], int64(w.Now())
	if a.again.Load() > now || !a.begun.CompareAndSwap(false, true) {
		return false
	}
	a.again.Store(now + int64(askApart))
	started := w.aside.start(rank, func() {
		defer w.engine.Wake()
		n, err := w.Neighbor(rank)
		if err == nil && a.ring.Swap(false) {
			n.Wake()
		}
		a.refused.Store(err != nil && !errors.Is(err, os.ErrDeadlineExceeded))
		a.begun.Store(false)
	})
	if !started {
		a.begun.Store(false)
	}
	return false
}

// Ring wakes a rank that may sleep; see verbs.Neighbor.Ring. A process that was never met it wakes when that has answered, for which
// it does not wait.
func (w *World) Ring(rank int) {
	if n := w.neighbors[rank].Load(); n != nil {
		(*n).Wake()
		return
	}
	if w.stranger(rank) {
		job, number := w.root, rank
		if w != job {
			number = w.inJob[rank]
		}
		job.acquaintances[number].ring.Store(true)
		if !w.Acquainted(rank) {
			// Who asks sees the mark when they have met, which was after this look.
			return
		}
	}
	if n, err := w.Neighbor(rank); err == nil {
		n.Wake()
	}
}

// approachable tells whether to map memory of a rank waits for nobody: they are acquainted, or cannot be, and why
// is found at once.
func (w *World) approachable(rank int) bool {
	if w.Acquainted(rank) {
		return true
	}
	if w != w.root {
		rank, w = w.inJob[rank], w.root
	}
	return w.aside.isOver() || w.acquaintances[rank].refused.Swap(false)
}

// Approach returns when to map memory of a rank waits for nobody: this rank has mapped some before, or has
// an answer now of a process that it had not met, or finds at once why it never will. It ends with the context's
// error where the process does not answer. op names the call in errors.
func (w *World) Approach(ctx context.Context, op string, rank int) error {
	if err := made(w, "Approach"); err != nil {
		return err
	}
	if ctx == nil {
		return nilArgument("Approach", "context")
	}
	return w.approach(ctx, op, rank, func() error { return nil })
}

// approach is Approach that ends with an error that lost gives, too.
func (w *World) approach(ctx context.Context, op string, rank int, lost func() error) error {
	if !w.stranger(rank) {
		return nil
	}
	wait := w.NewWaiter()
	defer wait.Finish()
	wait.For(rank)
	for !w.approachable(rank) {
		if err := lost(); err != nil {
			return err
		}
		if err := wait.Pause(ctx); err != nil {
			return errtext.Errorf("%s: %w: %s", errtext.Call("world", op), err, unmet(rank))
		}
	}
	return nil
}

// approach returns when a rank that this call has to map is approachable.
func (r *round) approach(ctx context.Context, rank int) error {
	w := r.w
	return w.approach(ctx, r.op, rank, func() error { return w.lost(r.op, r.signature.number) })
}

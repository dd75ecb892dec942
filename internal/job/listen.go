package job

import (
	"sync"

	"github.com/onesided/rma/internal/progress"
)

// OnFailure calls f with each later failure, in the order of Failures, until stop is called.
func (w *World) OnFailure(f func(*PeerError)) (stop func()) {
	if f == nil {
		return func() {}
	}
	q := new(bulletin)
	if w.virtual() {
		q.deferTo = w.engine
	}
	var told int
	// Two failures at a time may add to q in either order.
	q.f = func(int) {
		if e := w.roster.next(&told); e != nil {
			f(e)
		}
	}
	unlisten := w.roster.listen(&told, q.add)
	return func() {
		unlisten()
		q.end()
	}
}

// OnFailureAtOnce is OnFailure for layers that must know before anybody acts on a failure:
// f is called where that is noticed, from any goroutine, and in the midst of progress, before
// anybody can know of the failure, also by Failure and Failures. It must not wait for
// anything, or call what is of a World or a Link but for Rank and Size.
func (w *World) OnFailureAtOnce(f func(rank int)) (stop func()) { return w.roster.beforehand(f) }

// A bulletin has a function told of failures by a goroutine that is there only while
// there are some to tell.
type bulletin struct {
	f func(rank int)
	// deferTo is that of a rank that has no other goroutine.
	deferTo *progress.Engine

	// running is that goroutine. It starts under mu, and not after the end.
	running sync.WaitGroup

	mu      sync.Mutex
	failed  []int
	telling bool
	ended   bool
}

func (b *bulletin) add(rank int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	b.failed = append(b.failed, rank)
	if b.telling {
		return
	}
	b.telling = true
	if b.deferTo != nil {
		b.deferTo.Defer(b.tell)
	} else {
		b.running.Go(b.tell)
	}
}

func (b *bulletin) tell() {
	for {
		b.mu.Lock()
		if b.ended || len(b.failed) == 0 {
			b.telling = false
			b.mu.Unlock()
			return
		}
		rank := b.failed[0]
		b.failed = b.failed[1:]
		b.mu.Unlock()
		b.f(rank)
	}
}

func (b *bulletin) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
}

// before calls f, which must not wait, before the end, and tells whether it did.
func (b *bulletin) before(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		f()
	}
	return !b.ended
}

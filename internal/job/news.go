package job

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// news are failures that this rank has noticed, or heard of, and has not passed on
// yet. A rank that waits for another has a link to it, so when each tells those that
// it has links with, all hear of it who wait for the one that has failed, or for one
// who waits for it.
type news struct {
	mu     sync.Mutex
	some   atomic.Bool
	failed []failure
}

// A failure is that of a rank of a World.
type failure struct {
	world *World
	rank  int
}

// toldError is why a rank has failed, as it has told itself, or another has, by.
type toldError struct {
	rank, by int
	text     string
}

func (e *toldError) Error() string {
	if e.by == e.rank {
		return e.text
	}
	return fmt.Sprintf("%s (told by rank %d)", e.text, e.by)
}

// noteFailure has progress pass on that rank has failed.
func (w *World) noteFailure(rank int) {
	w.news.mu.Lock()
	w.news.failed = append(w.news.failed, failure{w, rank})
	w.news.some.Store(true)
	w.news.mu.Unlock()
	w.engine.WakeAll()
}

// passOn tells of failures over all links of the Worlds in which they are, with the mutex of
// progress.
func (w *World) passOn() {
	w.news.mu.Lock()
	failed := w.news.failed
	w.news.failed = nil
	w.news.some.Store(false)
	w.news.mu.Unlock()
	for _, f := range failed {
		for _, c := range w.cards {
			if c == nil {
				continue
			}
			for _, l := range inOrder(c.links) {
				if l.world == f.world {
					l.tellFailure(f.rank)
				}
			}
		}
	}
}

// passOnFirst passes on what there is before a call says that a rank has failed: the
// program may exit for that.
func (w *World) passOnFirst() {
	if w.news.some.Load() {
		w.engine.PollUncounted()
	}
}

// tellFailure tells that a rank has failed, with the mutex of progress.
func (l *Link) tellFailure(rank int) {
	if l.rank == rank || l.mute || l.broken.Load() != nil {
		return
	}
	// Of the failure before this one the rank was told first.
	reason := reasonOf(l.world.roster.failed[rank].Load().Cause)
	l.Reply(&Message{Kind: kindFailed, X: uint64(rank)}, []byte(reason))
}

// tellFailures tells of all that were passed on before there was this link, of the first
// at first.
func (l *Link) tellFailures() {
	first, err := l.world.FirstFailure()
	if err == nil {
		return
	}
	l.tellFailure(first)
	for rank := range l.world.size {
		if rank != first && l.world.roster.failed[rank].Load() != nil {
			l.tellFailure(rank)
		}
	}
}

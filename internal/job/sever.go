package job

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/onesided/rma/internal/traced"
	"github.com/onesided/rma/verbs"
)

// lines are the queue pairs that this rank has with ranks that it does not map. A rank
// that is taken for dead may be stopped, or cut off, and come back in the middle of a
// write: its lines are severed before anybody is told of its failure. So what it does
// late does not come to memory that others use again, or to a window whose lock it held
// and another has now.
type lines struct {
	mu      sync.Mutex
	open    map[int][]verbs.Severer
	severed map[int]bool
}

// add makes a queue pair of rank's known, unless rank has been severed.
func (l *lines) add(rank int, pair verbs.QueuePair) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.severed[rank] {
		return fmt.Errorf("world: rank %d has been taken for dead: %w", rank, verbs.ErrPeerGone)
	}
	traced.Name(pair, strconv.Itoa(rank))
	if s, ok := pair.(verbs.Severer); ok {
		if l.open == nil {
			l.open = make(map[int][]verbs.Severer)
		}
		l.open[rank] = append(l.open[rank], s)
	}
	return nil
}

// remove forgets a queue pair of rank's that is closed.
func (l *lines) remove(rank int, pair verbs.QueuePair) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := slices.DeleteFunc(l.open[rank], func(open verbs.Severer) bool { return any(open) == any(pair) })
	if len(left) > 0 {
		l.open[rank] = left
	} else {
		delete(l.open, rank)
	}
}

// hangUp closes a queue pair of rank's.
func (w *World) hangUp(rank int, pair verbs.QueuePair) {
	w.lines.remove(rank, pair)
	_ = pair.Close()
}

// mostToCatchUp bounds how often catchUp polls while others go on sending.
const mostToCatchUp = 256

// catchUp serves what has come, of meetings also from ranks that have failed: who was
// severed had all that had come taken in before, and what it has done is done. And what
// others tell of a failure comes before one that is about to be recorded.
func (w *World) catchUp() {
	w.engine.Drain(mostToCatchUp)
}

// sever ends all that there is with rank.
func (l *lines) sever(rank int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.severed == nil {
		l.severed = make(map[int]bool)
	}
	l.severed[rank] = true
	for _, pair := range l.open[rank] {
		pair.Sever()
	}
	delete(l.open, rank)
}

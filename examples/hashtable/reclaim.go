package hashtable

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/window"
)

// usualPatience is how long an operation waits for space that others are about to give.
const usualPatience = time.Second

// fedAhead is how many times as many pieces are taken from a list as are lacking.
const fedAhead = 4

// mostWaiting is how many words a bag has at most before it is closed. mostWaitingNear is that where the memory of all
// ranks is mapped: it costs little there to look who may know them, and what is used again soon is still in the caches.
const (
	mostWaiting     = 1 << 15
	mostWaitingNear = 1 << 12
)

// A retired piece is one that no slot refers to any more.
type retired struct {
	owner int
	piece
	// block: it is that of an index, and place is a line.
	block bool
}

// A blocker is an announcement that may be of somebody who knows a closed bag's pieces.
type blocker struct {
	rank, word int
	value      uint64
}

// A reclaimer has this rank's bags of retired pieces.
type reclaimer struct {
	mu   sync.Mutex
	open []retired
	// openWords is what open has, nextLook what it has when the closed bag is looked after. bagWords is what it has
	// at least when it is closed.
	openWords, nextLook, bagWords int
	// freed counts the pieces that came out of bags and lists.
	freed atomic.Uint64
	// blocks are those of indexes that are in bags.
	blocks atomic.Int32
	// hopeless is what all ranks' bags had when waiting for them was in vain.
	hopeless atomic.Uint64

	// looking is held by whoever has the closed bag.
	looking  sync.Mutex
	closed   []retired
	blockers []blocker
	seen     [][]uint64
	// flushes are those of what is read of each rank.
	flushes []window.Request
}

// retire puts a batch's pieces into the bag, and looks after the closed one if it is time.
func (t *Table) retire(ctx context.Context, b *Batch) {
	r, due := &t.reclaimer, t.bag(b.retired)
	b.retired = b.retired[:0]
	if due && r.looking.TryLock() {
		// An error has the bag wait for the next look; operations are not concerned.
		_, _ = t.pass(ctx)
		r.looking.Unlock()
	}
}

// bag puts pieces into the open bag, and tells whether it is time to look after the closed one.
func (t *Table) bag(pieces []retired) (due bool) {
	words := 0
	for i := range pieces {
		words += pieces[i].words
	}
	atomic.AddUint64(&t.local[waitingWord], uint64(words))
	r := &t.reclaimer
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = append(r.open, pieces...)
	r.openWords += words
	return r.openWords >= r.nextLook
}

// pass frees the pieces of the closed bag, if everybody who may know them has left, and closes
// the open one if it is that one's turn. Its caller holds looking.
func (t *Table) pass(ctx context.Context) (freed bool, err error) {
	r := &t.reclaimer
	if len(r.closed) > 0 {
		if freed, err = t.lookAgain(ctx); err != nil || len(r.closed) > 0 {
			r.mu.Lock()
			r.nextLook = r.openWords + r.bagWords/4
			r.mu.Unlock()
			return freed, err
		}
	}
	r.mu.Lock()
	r.closed, r.open = r.open, r.closed
	r.openWords, r.nextLook = 0, r.bagWords
	r.mu.Unlock()
	if len(r.closed) == 0 {
		return freed, nil
	}
	// Until a look has succeeded anybody may know the pieces.
	r.blockers = append(r.blockers[:0], blocker{rank: -1})
	more, err := t.lookAgain(ctx)
	return freed || more, err
}

// setBags has bags be closed when they have most words, or a share of what there is.
func (t *Table) setBags(most int) {
	t.reclaimer.bagWords = max(1, min(most, t.recordWords/(16*t.size)))
	t.reclaimer.nextLook = t.reclaimer.bagWords
}

// near tells whether the memory of all ranks is mapped.
func (t *Table) near() bool {
	for rank := range t.size {
		if _, ok := t.words.Mapped(rank); !ok {
			return false
		}
	}
	return true
}

// lookAgain frees the closed bag's pieces if none of its blockers is there any more.
func (t *Table) lookAgain(ctx context.Context) (freed bool, err error) {
	r := &t.reclaimer
	if err := t.look(ctx); err != nil {
		return false, err
	}
	if len(r.blockers) == 1 && r.blockers[0].rank < 0 {
		r.blockers = r.blockers[:0]
		for rank, words := range r.seen {
			for i, value := range words[:announcements] {
				if value%2 == 1 {
					r.blockers = append(r.blockers, blocker{rank, i, value})
				}
			}
		}
	} else {
		still := r.blockers[:0]
		for _, b := range r.blockers {
			if r.seen[b.rank][b.word] == b.value {
				still = append(still, b)
			}
		}
		r.blockers = still
	}
	if len(r.blockers) > 0 {
		return false, nil
	}
	if t.gate != nil {
		if over, err := t.gate.grace(ctx); !over || err != nil {
			return false, err
		}
	}
	words := 0
	for _, p := range r.closed {
		words += p.words
		if !p.block {
			t.spaces[p.owner].give(p.piece)
		} else {
			r.blocks.Add(-1)
			t.giveBlock(ctx, p.owner, p.piece)
		}
	}
	r.freed.Add(uint64(len(r.closed)))
	r.closed = r.closed[:0]
	atomic.AddUint64(&t.local[waitingWord], -uint64(words))
	if 2*words < r.bagWords {
		// How much this rank needs shows in a whole bag's time.
		return true, nil
	}
	return true, t.share(ctx)
}

// look reads all ranks' announcements, and how much they have in bags. Those of failed ranks are
// none.
func (t *Table) look(ctx context.Context) error {
	r := &t.reclaimer
	if r.seen == nil {
		r.seen, r.flushes = make([][]uint64, t.size), make([]window.Request, t.size)
		for rank := range r.seen {
			r.seen[rank] = make([]uint64, announcedWords)
		}
	}
	var failed error
	for rank, to := range r.seen {
		if memory, ok := t.words.Mapped(rank); ok {
			for i := range to {
				to[i] = atomic.LoadUint64(&memory[announceStart+i])
			}
			continue
		}
		err := t.words.GetAccumulate(window.NoOp, nil, to, rank, announceStart)
		if err == nil {
			r.flushes[rank], err = t.words.RFlush(rank)
		}
		if err != nil {
			failed = errors.Join(failed, t.forgive(err, rank))
		}
	}
	for rank, flush := range r.flushes {
		if err := flush.Wait(ctx); err != nil {
			failed = errors.Join(failed, t.forgive(err, rank))
		}
	}
	clear(r.flushes)
	if failed != nil {
		// What was not completed may yet be written.
		r.seen = nil
	}
	return failed
}

// forgive is nothing if err is that the rank has failed.
func (t *Table) forgive(err error, rank int) error {
	if !isFailureOf(err, rank) {
		return err
	}
	t.reclaimer.seen[rank] = make([]uint64, announcedWords)
	return nil
}

// refill looks for space for the operations that had none. known is what freed was before they
// were tried. It tells whether they are to be tried again.
func (t *Table) refill(ctx context.Context, starved []starvation, known uint64, since time.Duration) bool {
	r := &t.reclaimer
	empty := false
	for look := 0; ; look++ {
		if r.freed.Load() != known {
			return true
		}
		again, sum := t.refillOnce(ctx, starved)
		switch {
		case again || r.freed.Load() != known:
			return true
		case sum == 0 && empty || sum > 0 && sum == r.hopeless.Load():
			return false
		case t.world.Now()-since > t.patience:
			r.hopeless.Store(sum)
			return false
		case sum > 0 && t.await(ctx, look) != nil:
			return false
		}
		// What was in no bag any more may have been on its way to a list that was looked at before.
		empty = sum == 0
	}
}

// refillOnce tells whether there may be space now, else how much is in bags somewhere.
func (t *Table) refillOnce(ctx context.Context, starved []starvation) (again bool, sum uint64) {
	r := &t.reclaimer
	r.looking.Lock()
	defer r.looking.Unlock()
	if freed, err := t.pass(ctx); err != nil || freed {
		return err == nil, 0
	}
	for i := range starved {
		s := &starved[i]
		if s.words == 0 {
			may, err := t.mayGrow(ctx, s.owner, s.known)
			again = again || may && err == nil
			// It is somewhere.
			sum++
			continue
		}
		// An owner that has failed fails the operation, too.
		for got := 0; got < fedAhead*s.times; {
			taken, err := t.pop(ctx, s.owner, s.words)
			if err != nil && !isFailureOf(err, s.owner) {
				return false, 0
			}
			if taken == 0 {
				if broken, err := t.breakBlock(ctx, s.owner, s.words); err == nil && broken {
					again = true
				}
				break
			}
			got += taken
			again = true
		}
	}
	if again || t.look(ctx) != nil {
		return again, 0
	}
	for _, words := range r.seen {
		sum += words[announcements]
	}
	if t.visits {
		sum += atomic.LoadUint64(&t.local[waitingWord])
	}
	return false, sum
}

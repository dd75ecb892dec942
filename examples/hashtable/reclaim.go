package hashtable

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/window"
)

// usualPatience is how long an operation waits for space that others are about to free.
const usualPatience = time.Second

// refillFactor is how many pieces are taken from a list for each one that is lacking.
const refillFactor = 4

// mostWaiting is the number of words at which a retire list is closed. mostWaitingMapped is that number if the memory of
// all ranks is mapped. There it costs little to read announcements, and space that is reused soon is still cached.
const (
	mostWaiting       = 1 << 15
	mostWaitingMapped = 1 << 12
)

// A retired piece is one to which no slot refers any more.
type retired struct {
	owner int
	piece
	// block is set if the piece is the block of an index; place is then a line.
	block bool
}

// A blocker is an announcement of a Run that may know pieces of the closed list.
type blocker struct {
	rank, word int
	value      uint64
}

// A reclaimer holds this rank's retire lists.
type reclaimer struct {
	mu   sync.Mutex
	open []retired
	// openWords is the number of words in open. nextCheck is the number at which the closed list is checked, closeWords
	// the number at which open may be closed.
	openWords, nextCheck, closeWords int
	// freed counts the pieces that were freed from retire lists or taken from owners' lists.
	freed atomic.Uint64
	// blocks counts the blocks of indexes that are in retire lists.
	blocks atomic.Int32
	// exhausted is the number of words in all ranks' retire lists at the last wait that ended without success.
	exhausted atomic.Uint64

	// checking guards the closed list.
	checking sync.Mutex
	closed   []retired
	blockers []blocker
	seen     [][]uint64
	// flushes are the requests that complete the reads from each rank.
	flushes []window.Request
}

// retire puts a batch's pieces into the open list, and checks the closed one if that is due.
func (t *Table) retire(ctx context.Context, b *Batch) {
	r, due := &t.reclaimer, t.addRetired(b.retired)
	b.retired = b.retired[:0]
	if due && r.checking.TryLock() {
		// After an error the list waits for the next check. The operations are not affected.
		_, _ = t.pass(ctx)
		r.checking.Unlock()
	}
}

// addRetired puts pieces into the open retire list and reports whether a check of the closed one is due.
func (t *Table) addRetired(pieces []retired) (due bool) {
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
	return r.openWords >= r.nextCheck
}

// pass frees the pieces of the closed list if every Run that may know them has ended. It then closes the open list if
// that is due. The caller holds checking.
func (t *Table) pass(ctx context.Context) (freed bool, err error) {
	r := &t.reclaimer
	if len(r.closed) > 0 {
		if freed, err = t.checkClosed(ctx); err != nil || len(r.closed) > 0 {
			r.mu.Lock()
			r.nextCheck = r.openWords + r.closeWords/4
			r.mu.Unlock()
			return freed, err
		}
	}
	r.mu.Lock()
	r.closed, r.open = r.open, r.closed
	r.openWords, r.nextCheck = 0, r.closeWords
	r.mu.Unlock()
	if len(r.closed) == 0 {
		return freed, nil
	}
	// Until a scan of announcements has succeeded, any Run may know the pieces.
	r.blockers = append(r.blockers[:0], blocker{rank: -1})
	more, err := t.checkClosed(ctx)
	return freed || more, err
}

// setCloseWords sets the number of words at which retire lists are closed: most words, or a share of the record space if that is
// less.
func (t *Table) setCloseWords(most int) {
	t.reclaimer.closeWords = max(1, min(most, t.recordWords/(16*t.size)))
	t.reclaimer.nextCheck = t.reclaimer.closeWords
}

// allMapped reports whether the memory of all ranks is mapped.
func (t *Table) allMapped() bool {
	for rank := range t.size {
		if _, ok := t.words.Mapped(rank); !ok {
			return false
		}
	}
	return true
}

// checkClosed frees the closed list's pieces if none of its blockers is left.
func (t *Table) checkClosed(ctx context.Context) (freed bool, err error) {
	r := &t.reclaimer
	if err := t.scanAnnouncements(ctx); err != nil {
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
	if 2*words < r.closeWords {
		// How many pieces this rank needs shows only while a whole retire list fills.
		return true, nil
	}
	return true, t.share(ctx)
}

// scanAnnouncements reads all ranks' announcements and the sizes of their retire lists. Failed ranks have none.
func (t *Table) scanAnnouncements(ctx context.Context) error {
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
			failed = errors.Join(failed, t.ignoreFailure(err, rank))
		}
	}
	for rank, flush := range r.flushes {
		if err := flush.Wait(ctx); err != nil {
			failed = errors.Join(failed, t.ignoreFailure(err, rank))
		}
	}
	clear(r.flushes)
	if failed != nil {
		// Reads that were not completed may still be written.
		r.seen = nil
	}
	return failed
}

// ignoreFailure returns nil if err is the failure of the rank.
func (t *Table) ignoreFailure(err error, rank int) error {
	if !isFailureOf(err, rank) {
		return err
	}
	t.reclaimer.seen[rank] = make([]uint64, announcedWords)
	return nil
}

// refill looks for space for operations that found none. known is the value of freed before they were tried. refill
// reports whether to try them again.
func (t *Table) refill(ctx context.Context, short []shortage, known uint64, since time.Duration) bool {
	r := &t.reclaimer
	empty := false
	for look := 0; ; look++ {
		if r.freed.Load() != known {
			return true
		}
		again, sum := t.refillOnce(ctx, short)
		switch {
		case again || r.freed.Load() != known:
			return true
		case sum == 0 && empty || sum > 0 && sum == r.exhausted.Load():
			return false
		case t.world.Now()-since > t.patience:
			r.exhausted.Store(sum)
			return false
		case sum > 0 && t.await(ctx, look) != nil:
			return false
		}
		// Pieces that have left the retire lists may have been on their way to a list that was read before.
		empty = sum == 0
	}
}

// refillOnce reports whether there may be space now. Otherwise it returns the number of words in all retire lists.
func (t *Table) refillOnce(ctx context.Context, short []shortage) (again bool, sum uint64) {
	r := &t.reclaimer
	r.checking.Lock()
	defer r.checking.Unlock()
	if freed, err := t.pass(ctx); err != nil || freed {
		return err == nil, 0
	}
	for i := range short {
		s := &short[i]
		if s.words == 0 {
			may, err := t.mayGrow(ctx, s.owner, s.known)
			again = again || may && err == nil
			// The pieces are in some retire list.
			sum++
			continue
		}
		// If the owner has failed, the operation fails, too.
		for got := 0; got < refillFactor*s.times; {
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
	if again || t.scanAnnouncements(ctx) != nil {
		return again, 0
	}
	for _, words := range r.seen {
		sum += words[announcements]
	}
	if t.isClient {
		sum += atomic.LoadUint64(&t.local[waitingWord])
	}
	return false, sum
}

package hashtable

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/window"
)

// A Run in progress has an announcement: a word of its own rank's window that is odd. Consecutive words are in
// different lines.

// enter announces a Run, or another reader of slots and records, in one of this rank's words, from first on. The
// compare-and-swap is ordered before the reads that follow it. A store would not be: later loads of the same
// processor may overtake it.
func (t *Table) enter(ctx context.Context, first int) (word int, err error) {
	if t.isClient {
		return 0, t.gate.lock(ctx, window.Shared)
	}
	for round := 0; ; round++ {
		for i := range announcements {
			word = (first + i) % announcements
			at := t.announcement(word)
			if was := atomic.LoadUint64(at); was%2 == 0 && atomic.CompareAndSwapUint64(at, was, was+1) {
				return word, nil
			}
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		backOff(round)
	}
}

// A rank that polls for a change yields backOffYields times, and then sleeps for backOffPause between polls.
const (
	backOffYields = 100
	backOffPause  = 100 * time.Microsecond
)

// backOff is called after the given number of polls.
func backOff(poll int) {
	if poll < backOffYields {
		runtime.Gosched()
	} else {
		time.Sleep(backOffPause)
	}
}

// await is like backOff, for a rank that waits for other ranks. In virtual time other ranks continue while this one
// computes.
func (t *Table) await(ctx context.Context, poll int) error {
	if t.world.Virtual() {
		t.world.Compute(backOffPause)
	} else {
		backOff(poll)
	}
	return ctx.Err()
}

// leave ends what enter began.
func (t *Table) leave(word int) {
	if t.isClient {
		// The failure of the table's process shows in every operation on the table.
		_ = t.gate.unlock()
		return
	}
	atomic.AddUint64(t.announcement(word), 1)
}

func (t *Table) announcement(word int) *uint64 {
	return &t.local[announceStart+word%announceLines*lineWords+word/announceLines]
}

// leaveLater is leave for a Run that was abandoned. It leaves when all that the Run issued to the owners is complete:
// a compare-and-swap that is still on its way must not meet a slot's value again.
func (t *Table) leaveLater(word int, owners []int) {
	leave := func() {
		for _, rank := range owners {
			// A flush fails if the rank has failed, and then so have the operations to it. A shortage of this process
			// is temporary. A table that is being closed needs no announcements.
			for errors.Is(t.words.Flush(context.Background(), rank), verbs.ErrShortage) && !t.closed.Load() {
				backOff(backOffYields)
			}
		}
		t.leave(word)
	}
	if t.world.Virtual() {
		// In virtual time only the rank itself may wait.
		leave()
	} else {
		t.late.Go(leave)
	}
}

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

// A Run that is under way has an announcement: a word of its own rank's window that is odd.
// Words that are taken one after the other are in different lines.

// enter announces a Run, or whatever else reads slots and after that records, in one of this
// rank's words, from first on. The compare-and-swap has the announcement there for all to see before anything
// is read: a store would not, which later loads of the same processor may overtake.
func (t *Table) enter(ctx context.Context, first int) (word int, err error) {
	if t.visits {
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
		breathe(round)
	}
}

// Who waits for what nobody tells of lets others run so often, and then sleeps.
const (
	breathYields = 100
	breathPause  = 100 * time.Microsecond
)

// breathe is called between looks, with the number of the last one.
func breathe(look int) {
	if look < breathYields {
		runtime.Gosched()
	} else {
		time.Sleep(breathPause)
	}
}

// await is breathe for a rank that waits for other ranks. In virtual time those continue while this rank computes.
func (t *Table) await(ctx context.Context, look int) error {
	if t.world.Virtual() {
		t.world.Compute(breathPause)
	} else {
		breathe(look)
	}
	return ctx.Err()
}

// leave ends what enter began.
func (t *Table) leave(word int) {
	if t.visits {
		// That the table's process has failed is known to whom it concerns.
		_ = t.gate.unlock()
		return
	}
	atomic.AddUint64(t.announcement(word), 1)
}

func (t *Table) announcement(word int) *uint64 {
	return &t.local[announceStart+word%announceLines*lineWords+word/announceLines]
}

// leaveLater is leave for a Run that was given up, when what it has issued to some owners is complete: a
// compare-and-swap that is under way must not meet a slot's value again.
func (t *Table) leaveLater(word int, owners []int) {
	leave := func() {
		for _, rank := range owners {
			// Who cannot be flushed has failed, and so has what is under way to it; but a shortage of this process passes. A
			// table that is being closed has no use for its announcements.
			for errors.Is(t.words.Flush(context.Background(), rank), verbs.ErrShortage) && !t.closed.Load() {
				breathe(breathYields)
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

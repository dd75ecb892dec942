package world

import (
	"context"
	"fmt"
	"math/bits"
	"sync/atomic"
)

// A Meeting is a barrier through flags in memory that the ranks map: each has a
// block of MeetingBytes, zeroed, that the others can map. It orders everything
// that any rank did before it, before everything that any rank does after it.
// Meetings are numbered from 1, wrap, and are held by one goroutine of a rank at a
// time.
//
// With a core for each rank it is a dissemination barrier: in round k a rank tells
// the one 2^k after it and hears from the one 2^k before, so that after
// log2(size) rounds it has heard, transitively, of all. Each flag is stored after
// everything this rank did or heard of. Telling again changes nothing, so a
// cancelled Meet may be repeated.
//
// With more ranks than cores what counts is that each rank runs only once: all add
// to one counter of rank 0 and sleep; the last to come releases rank 0, and the
// ranks release each other along a binomial tree.
//
// When Meet has returned, nobody touches this rank's block again in that meeting:
// the last one may be followed by freeing it.
type Meeting struct {
	world *World
	own   meetingBlock
	other func(rank int) ([]byte, error)
	// blocks[r] is nil until rank r is first told or looked at.
	blocks []atomic.Pointer[meetingBlock]
	// last is the meeting of ranks that leave: that a rank has left is no reason
	// there not to wait for it.
	last bool
	// announced is the last number that this rank added to the counter of rank 0.
	announced uint32
	// histories is the sum of those of all meetings.
	histories uint64
}

// NewMeeting makes this rank's end of a meeting. own is its block, other maps the
// block of another rank.
func (w *World) NewMeeting(own []byte, other func(rank int) ([]byte, error)) *Meeting {
	return &Meeting{world: w, own: meetingBlockOver(own), other: other, blocks: make([]atomic.Pointer[meetingBlock], w.size)}
}

// Reached tells whether a count that only grows has come to number, though both may
// have wrapped.
func reached(count *atomic.Uint32, number uint32) bool { return int32(count.Load()-number) >= 0 }

// Meet returns when every rank has called it with this number, which is one more
// than the last. op names the call in errors.
func (m *Meeting) Meet(ctx context.Context, op string, number uint32) error {
	return m.meet(ctx, op, number, 0)
}

// meet is Meet that returns an error if the ranks' histories are not the same. In
// the dissemination a rank that hears of another history tells nobody further, so
// that nobody passes who would have heard of it through others; at the root the
// last to come compares the sum.
func (m *Meeting) meet(ctx context.Context, op string, number uint32, history uint64) error {
	if m.world.crowded {
		return m.meetAtRoot(ctx, op, number, history)
	}
	size := m.world.size
	for k, distance := 0, 1; distance < size; k, distance = k+1, 2*distance {
		to, from := m.world.rank+distance, m.world.rank-distance
		if to >= size {
			to -= size
		}
		if from < 0 {
			from += size
		}
		next := m.blocks[to].Load()
		if next == nil {
			var err error
			if next, err = m.block(op, to); err != nil {
				return err
			}
		}
		if history != 0 {
			next.history(k, number).Store(history)
		}
		next.round(k).Store(number)
		m.world.Ring(to)
		if heard := m.own.round(k); !reached(heard, number) {
			if err := m.hear(ctx, op, heard, number, from); err != nil {
				return err
			}
		}
		if history != 0 && m.own.history(k, number).Load() != history {
			return m.world.unlike(op, from)
		}
	}
	return nil
}

func (m *Meeting) block(op string, rank int) (*meetingBlock, error) {
	if b := m.blocks[rank].Load(); b != nil {
		return b, nil
	}
	memory, err := m.other(rank)
	if err == nil && len(memory) < MeetingBytes {
		err = fmt.Errorf("block of %d bytes, not %d", len(memory), MeetingBytes)
	}
	if err != nil {
		if failure := m.world.anyFailure(op); failure != nil {
			return nil, failure
		}
		return nil, fmt.Errorf("world: %s: reaching rank %d: %w", op, rank, err)
	}
	b := meetingBlockOver(memory)
	m.blocks[rank].Store(&b)
	return &b, nil
}

// parent of a rank in the tree, -1 for rank 0.
func parent(rank int) int {
	if rank == 0 {
		return -1
	}
	return rank &^ (1 << (bits.Len(uint(rank)) - 1))
}

// hear waits until word has come to number. It comes from rank from, or if that is
// -1 from the last of all. Who has left has done its part of every meeting that it
// called, so what has not come from it never will; and if anyone has left while not
// all have come, it will not come.
func (m *Meeting) hear(ctx context.Context, op string, word *atomic.Uint32, number uint32, from int) error {
	wait := m.world.NewWaiter()
	defer wait.Finish()
	for !reached(word, number) {
		if m.world.Failures() != 0 && !reached(word, number) {
			return m.failure(op)
		}
		if wait.prepared {
			if err := m.vain(op, word, number, from, wait.long); err != nil {
				return err
			}
		}
		if err := wait.Pause(ctx); err != nil {
			return fmt.Errorf("world: %s: %w", op, err)
		}
	}
	return nil
}

// failure is the error of a meeting when a rank has failed.
func (m *Meeting) failure(op string) error {
	if m == m.world.barrier {
		return m.world.lost(op, m.world.calls.Load()+1)
	}
	return m.world.anyFailure(op)
}

// vain says why what hear waits for will not come. long tells that it has not for
// long.
func (m *Meeting) vain(op string, word *atomic.Uint32, number uint32, from int, long bool) error {
	w := m.world
	if m.last {
		return nil
	}
	leaver, left := w.barrier.left(from)
	left = left && !reached(word, number)
	if m != w.barrier {
		if left {
			// It may have left because another has failed.
			if w.hearOfFailure(); w.Failures() != 0 {
				return w.anyFailure(op)
			}
			return &PeerError{Rank: leaver, Op: op, Cause: ErrLeft}
		}
		return nil
	}
	mine := signature{call: callBarrier, number: w.calls.Load() + 1}
	if err := w.verdict(op, mine.number); err != nil {
		return err
	}
	switch {
	case left:
		return w.gone(op, mine.number, leaver)
	case from >= 0:
		return w.compare(op, from, &mine)
	case long:
		return w.compareAll(op, &mine)
	}
	return nil
}

func (m *Meeting) meetAtRoot(ctx context.Context, op string, number uint32, history uint64) error {
	root, err := m.block(op, 0)
	if err != nil {
		return err
	}
	if m.announced != number {
		m.announced = number
		if history != 0 {
			m.histories += history
			root.histories().Add(history)
		}
		if root.arrived().Add(1) == number*uint32(m.world.size) {
			if history != 0 && root.histories().Load() != m.histories*uint64(m.world.size) {
				return m.world.unlike(op, -1)
			}
			root.released().Store(number)
			m.world.Ring(0)
		}
	}
	if released := m.own.released(); !reached(released, number) {
		if err := m.hear(ctx, op, released, number, parent(m.world.rank)); err != nil {
			return err
		}
	}
	for distance := 1; distance < m.world.size; distance *= 2 {
		child := m.world.rank + distance
		if distance <= m.world.rank || child >= m.world.size {
			continue
		}
		b, err := m.block(op, child)
		if err != nil {
			return err
		}
		b.released().Store(number)
		m.world.Ring(child)
	}
	return nil
}

// leave tells those who will wait for this rank in vain that it has left. Who left
// has come to the end of every meeting that it called, so a flag that it has not
// set by now it never will.
func (m *Meeting) leave() {
	m.own.left().Store(uint32(m.world.rank) + 1)
	if root, err := m.block("Close", 0); err == nil {
		root.leaver().CompareAndSwap(0, uint32(m.world.rank)+1)
	}
}

// left tells whether rank has left, or any rank if rank is -1, and which.
func (m *Meeting) left(rank int) (int, bool) {
	word := (*atomic.Uint32)(nil)
	if rank < 0 {
		root, err := m.block("Close", 0)
		if err != nil {
			return 0, false
		}
		word = root.leaver()
	} else {
		b, err := m.block("Close", rank)
		if err != nil {
			return 0, false
		}
		word = b.left()
	}
	n := word.Load()
	return int(n) - 1, n != 0
}

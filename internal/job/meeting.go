package job

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/onesided/rma/internal/errtext"
)

// A Meeting is a barrier through flags: each rank has a block of MeetingBytes,
// zeroed, in which ranks that map it set flags themselves, and progress does for
// those that send a message instead. It orders everything that any rank did to
// memory that it maps before it, before everything that any rank does after it;
// what goes over a Link has to be flushed before. Its rounds are numbered from 1, wrap, and
// are held by one goroutine of a rank at a time.
//
// With a core for each rank it is a dissemination barrier: in round k a rank tells
// the one 2^k after it and hears from the one 2^k before, so that after
// log2(size) rounds it has heard, transitively, of all. Each flag is stored after
// everything this rank did or heard of.
//
// With more ranks than cores each rank should run only once. All add to one counter of rank 0, and sleep. The last
// to come releases the ranks that rank 0 has to release, if it maps them all, and then rank 0. Each rank that is
// released releases some others. So a rank that runs wakes several, and yet they do not all run at once.
//
// A Meet that was cancelled may be repeated, and so may one that has ended. However often it is repeated, it tells each rank
// once. So after Meet has returned without an error no rank writes to this rank's block for that number, and after the last
// Meet the block may be freed.
type Meeting struct {
	world *World
	// number is the same on every rank, and no other meeting's.
	number uint32
	own    meetingBlock
	other  func(rank int) ([]byte, error)
	// bytes is how long a block is at least. blocks[r] is nil until rank r is first told or
	// looked at.
	bytes  int
	blocks []atomic.Pointer[meetingBlock]
	// last is the meeting of ranks that leave: it waits also for ranks that have left.
	last bool
	// stall is what the waits of the last meeting hand on.
	stall stallState
	// arrivals are the last numbers at which ranks arrived by messages, at rank 0. They
	// belong to progress, but others may read them.
	arrivals []atomic.Uint32
	// announced is the last number that this rank added to the counter of rank 0.
	announced uint32
	// histories is the sum of those of all meetings.
	histories uint64
	// mine is the call by which this rank has come; said are the histories, or calls, that it has told last, of each round
	// and parity.
	mine called
	said [][2]uint64
	// told are the last numbers that this rank has told: one of each round, or at the root of each rank that it releases.
	told []uint32
	// unlike tells rank 0 that the histories are not the same: the sum shows it that the last to come, by a message, has made.
	unlike atomic.Bool
	tally  tally
	// leaver is a rank that has left the job, as this rank was told. gaveUp is the rank because of which this one gave
	// up: see missing.
	leaver, gaveUp atomic.Uint64
}

// The numbers of the World's own meetings, and the first of others.
const (
	barrierMeeting uint32 = iota
	lastMeeting
	FirstMeeting
)

// NewMeeting makes this rank's end of a meeting, which has the same number, from
// FirstMeeting, on every rank. own is its block, other maps the block of another
// rank. tallyAt is where in each block the TallyBytes are that Tally takes, a multiple of
// 64, or NoTally: the ranks call either Tally of it, or Meet. Ranks may tell it of themselves
// before they all have made it, but not before this rank has, until Close.
func (w *World) NewMeeting(number uint32, own []byte, tallyAt int, other func(rank int) ([]byte, error)) *Meeting {
	m := &Meeting{world: w, number: number, own: meetingBlockOver(own), other: other, blocks: make([]atomic.Pointer[meetingBlock], w.size), bytes: MeetingBytes, said: make([][2]uint64, bits.Len(uint(w.size-1)))}
	m.told = make([]uint32, max(len(m.said), releases))
	if w.rank == 0 {
		m.arrivals = make([]atomic.Uint32, w.size)
	}
	if tallyAt != NoTally {
		m.bytes = max(m.bytes, tallyAt+TallyBytes(w.size))
		m.tally.open(w, tallyAt)
	}
	// Those of others are as long, or block refuses them.
	_ = own[m.bytes-1]
	w.engine.Lock()
	defer w.engine.Unlock()
	w.meetings[number] = m
	return m
}

// Close has no messages change the block any more.
func (m *Meeting) Close() {
	m.world.engine.Lock()
	defer m.world.engine.Unlock()
	delete(m.world.meetings, m.number)
}

// Reached tells whether a count that only grows has come to number, though both may
// have wrapped.
func reached(count *atomic.Uint32, number uint32) bool { return int32(count.Load()-number) >= 0 }

// Meet returns when every rank has called it with this number, which is one more
// than the last. op names the call in errors. call, less than MostCalls, is the number of the call that meets. If ranks have come by
// different calls, by mistake, every rank gets a *MeetingError, and the meeting cannot be used any more. If call is 0 it is 0
// on all ranks, and nothing is compared.
func (m *Meeting) Meet(ctx context.Context, op string, call uint8, number uint32) error {
	m.mine = calledBy(call, m.world.rank)
	return m.meet(ctx, op, number, 0)
}

// meet is Meet that returns an error if the ranks' histories are not the same. In
// the dissemination a rank that hears of another history tells no more ranks, so
// that none passes that would have heard of it through others. At the root the
// last to come compares the sum.
func (m *Meeting) meet(ctx context.Context, op string, number uint32, history uint64) error {
	if m.world.rooted {
		return m.meetAndDo(ctx, op, number, history, func() {})
	}
	m.world.RaceRelease()
	m.own.come().Store(number)
	err := m.meetInRounds(ctx, op, number, history)
	m.world.RaceAcquire()
	return err
}

// meetAndDo is meet at the root, where the last to come does something before it releases any, if it maps
// that.
func (m *Meeting) meetAndDo(ctx context.Context, op string, number uint32, history uint64, do func()) error {
	m.world.RaceRelease()
	m.own.come().Store(number)
	err := m.meetAtRoot(ctx, op, number, history, do)
	m.world.RaceAcquire()
	return err
}

func (m *Meeting) meetInRounds(ctx context.Context, op string, number uint32, history uint64) error {
	size, all := m.world.size, m.mine
	for k, distance := 0, 1; distance < size; k, distance = k+1, 2*distance {
		to, from := m.world.rank+distance, m.world.rank-distance
		if to >= size {
			to -= size
		}
		if from < 0 {
			from += size
		}
		// Only one of them is not 0.
		word := history | uint64(all)
		switch next := m.blocks[to].Load(); {
		case m.told[k] == number:
		case next != nil:
			next.reach(k, number, m.unsaid(k, number, word))
			m.world.Ring(to)
		case !m.world.Mapped(to):
			if err := m.message(ctx, op, to, &Message{Kind: kindRound, A: uint8(k), X: uint64(number), Y: word}); err != nil {
				return err
			}
		default:
			next, err := m.blockIn(ctx, op, to)
			if err != nil {
				return err
			}
			next.reach(k, number, m.unsaid(k, number, word))
			m.world.Ring(to)
		}
		m.told[k] = number
		if heard := m.own.round(k); !reached(heard, number) {
			if err := m.hear(ctx, op, heard, number, from); err != nil {
				return err
			}
		}
		if history != 0 && m.own.history(k, number).Load() != history {
			return m.world.unlike(op, from)
		}
		if all != 0 {
			all = all.and(called(m.own.history(k, number).Load()))
		}
	}
	return compared(op, number, all)
}

// unsaid is the history, or calls, to tell beside a number in round k, 0 if that was said by the last one of its parity: a program
// makes much the same call again and again.
func (m *Meeting) unsaid(k int, number uint32, word uint64) uint64 {
	last := &m.said[k][number&1]
	if *last == word {
		return 0
	}
	*last = word
	return word
}

// reach tells that the rank before, in round k, has come to number.
func (b *meetingBlock) reach(k int, number uint32, history uint64) {
	if history != 0 {
		b.history(k, number).Store(history)
	}
	b.round(k).Store(number)
}

// message tells a rank whose block is not mapped.
func (m *Meeting) message(ctx context.Context, op string, rank int, message *Message) error {
	message.Service = m.number
	l, err := m.world.Link(rank)
	if err == nil {
		err = l.TellWithin(ctx, message, nil)
	}
	if err == nil {
		l.Post()
		return nil
	}
	return m.unreached(op, rank, err)
}

// unreached is the error of a meeting that could not tell a rank something.
func (m *Meeting) unreached(op string, rank int, err error) error {
	if m.world.FailureCount() != 0 {
		return m.failure(op)
	}
	return errtext.Errorf("%s: reaching rank %d: %w", errtext.Call("world", op), rank, err)
}

func (m *Meeting) block(op string, rank int) (*meetingBlock, error) {
	if b := m.blocks[rank].Load(); b != nil {
		return b, nil
	}
	memory, err := m.other(rank)
	if err == nil && len(memory) < m.bytes {
		err = fmt.Errorf("block of %s, not %d", errtext.Count(len(memory), "byte"), m.bytes)
	}
	if err != nil {
		if failure := m.world.anyFailure(op); failure != nil {
			return nil, failure
		}
		return nil, errtext.Errorf("%s: reaching rank %d: %w", errtext.Call("world", op), rank, err)
	}
	b := meetingBlockOver(memory)
	m.blocks[rank].Store(&b)
	return &b, nil
}

// blockIn is block for a call that waits.
func (m *Meeting) blockIn(ctx context.Context, op string, rank int) (*meetingBlock, error) {
	if b := m.blocks[rank].Load(); b != nil {
		return b, nil
	}
	if err := m.world.approach(ctx, op, rank, func() error { return m.failure(op) }); err != nil {
		return nil, err
	}
	return m.block(op, rank)
}

// releases is how many ranks each one releases.
const releases = 8

// parent of a rank is who releases it, -1 for rank 0.
func parent(rank int) int {
	if rank == 0 {
		return -1
	}
	return (rank - 1) / releases
}

// children are those that a rank releases: from one to before another.
func (w *World) children(rank int) (from, to int) {
	return min(releases*rank+1, w.size), min(releases*rank+releases+1, w.size)
}

// fromMates is who tells what comes from those that this rank shares memory with, of whom
// each has to do its part.
const fromMates = -2

// fromReaders is who tells that a slot of a board is free: the last of all that have read it.
const fromReaders = -3

// hear waits until word has come to number. It comes from rank from, or if that is
// less than 0 from the last of some, -1 of all. A rank that has left has done its part of every meeting that it
// called, so what has not come from it never will. At the root nothing will come from any rank
// if one has left without coming.
func (m *Meeting) hear(ctx context.Context, op string, word *atomic.Uint32, number uint32, from int) error {
	wait := m.world.NewWaiter()
	defer wait.Finish()
	if from >= 0 {
		wait.For(from)
	}
	if m.last {
		// It is called again and again, for one Close.
		wait.resumeStall(m.stall)
		defer func() { m.stall = wait.stallState() }()
	}
	for !reached(word, number) {
		if m.world.FailureCount() != 0 && !reached(word, number) {
			if m.world.catchUp(); !reached(word, number) {
				return m.failure(op)
			}
			break
		}
		if m.unlike.Load() {
			return m.world.unlike(op, -1)
		}
		if wait.AboutToSleep() {
			if wait.resumable() && !m.last {
				wait.resume(m.plight(op, m.at(number)))
			}
			if err := m.vain(op, word, number, from, &wait); err != nil {
				return err
			}
			if wait.Long() && wait.Quiet() && !m.last {
				m.seek(op, m.at(number), from, &wait)
			}
			if s := wait.Sleeper(); m.world.stalled(s) {
				m.world.reportStall(s, m.awaited(m.at(number), &wait))
			}
		}
		if err := wait.Pause(ctx); err != nil {
			if errors.Is(err, ErrDeadlock) {
				return errtext.Errorf("%s: %w", errtext.Call("world", op), err)
			}
			return errtext.Errorf("%s: %w%s", errtext.Call("world", op), err, m.missing(m.at(number), wait.found(from)))
		}
	}
	return nil
}

// at is the number of the call that waits for a number: in a tally that may be how many have come.
func (m *Meeting) at(number uint32) uint32 {
	if m.tally.used.Load() {
		return m.tally.number.Load()
	}
	return number
}

// seek finds out whom a wait for rank from, or if that is less than 0 for some, is for in the end.
func (m *Meeting) seek(op string, number uint32, from int, wait *Waiter) {
	if late := m.late(number); len(late) > 0 {
		from = late[0]
	}
	wait.seek(m.plight(op, number), from)
}

// awaited are the ranks that a wait is for in the end, as far as this one knows, nil for any other.
func (m *Meeting) awaited(number uint32, wait *Waiter) []int {
	if late := m.late(number); len(late) > 0 {
		return late
	}
	if found := wait.found(wait.Rank()); found.rank >= 0 {
		return []int{found.rank}
	}
	return nil
}

// missing says which ranks a call waited for when its context cut it short, as far as this rank can see: those which have not
// come to the meeting, or the one that it has found.
func (m *Meeting) missing(number uint32, found straggler) string {
	late := m.late(number)
	switch {
	case len(late) == 0 && found.rank >= 0:
		return found.waitsFor()
	case len(late) == 0:
		return ""
	}
	if len(late) == 1 {
		if found.rank == late[0] {
			return found.waitsFor()
		}
		return straggler{rank: late[0]}.waitsFor()
	}
	const most = 8
	names := strings.Trim(fmt.Sprint(late[:min(len(late), most)]), "[]")
	if len(late) > most {
		names += fmt.Sprintf(" and %d more", len(late)-most)
	}
	text := ": it waits for ranks " + names
	if found.in != 0 && slices.Contains(late, found.rank) {
		text += fmt.Sprintf("; rank %d is in %s", found.rank, callName(found.in))
	}
	return text
}

// late are the ranks that have not come to a number to which this one has come. It looks only at ranks that tell it, or at whose
// memory it has looked before: the first look takes long if a rank does not answer.
func (m *Meeting) late(number uint32) (late []int) {
	if m.own.come().Load() != number {
		// This rank waits for something else.
		return nil
	}
	for rank := range m.world.size {
		if come := m.comeOf(rank); come != nil && !reached(come, number) {
			late = append(late, rank)
		}
	}
	return late
}

// comeOf is the last number that another rank has come to, nil if this one does not see it.
func (m *Meeting) comeOf(rank int) *atomic.Uint32 {
	w := m.world
	switch {
	case rank == w.rank:
		return nil
	case !w.Mapped(rank):
		if w.rank != 0 || !w.rooted || m.tally.used.Load() {
			return nil
		}
		return &m.arrivals[rank]
	case w.neighbors[rank].Load() == nil:
		return nil
	}
	b, err := m.block("", rank)
	if err != nil {
		return nil
	}
	return b.come()
}

// failure is the error of a meeting when a rank has failed.
func (m *Meeting) failure(op string) error {
	if m == m.world.barrier {
		return m.world.lost(op, m.world.calls.Load()+1)
	}
	return m.world.anyFailure(op)
}

// vain says why what hear waits for will not come. What it has to ask for it asks only
// when all has been quiet.
func (m *Meeting) vain(op string, word *atomic.Uint32, number uint32, from int, wait *Waiter) error {
	w := m.world
	if from >= 0 && !w.Acquainted(from) {
		return nil
	}
	if from == parent(0) && reached(m.own.passed(), number) {
		// All have come, and who was released already may have left.
		return nil
	}
	if m.last {
		if rank, ended := w.endedLeaving(from); ended && !reached(word, number) {
			return &PeerError{Rank: rank, Op: op, Cause: ErrLeft}
		}
		return nil
	}
	var leaver int
	var left bool
	switch {
	case from == fromMates:
		leaver, left = m.mateLeft()
	case word == m.own.released():
		if leaver, left = m.absentee(number); !left && from >= 0 {
			leaver, left = w.barrier.left(from)
		}
	default:
		leaver, left = w.barrier.left(from)
	}
	if !left && wait.Slept() && m.isRound(word) {
		leaver, left = m.absentBeside(from, number)
	}
	left = left && !reached(word, number)
	if m != w.barrier {
		if m.tally.used.Load() && wait.Quiet() {
			w.watchOthers()
		}
		if !left {
			// In this order: what was found in a block that is in use no more does not count.
			leaver, left = m.absent(m.at(number), from, wait.Slept())
			left = left && !reached(word, number)
		}
		if !left {
			return nil
		}
		// It may have left because another has failed.
		if w.hearOfFailure(); w.FailureCount() != 0 {
			return w.anyFailure(op)
		}
		m.GiveUp(m.at(number), leaver, m.tally.used.Load())
		return w.LeftBy(op, leaver)
	}
	mine := w.round.signature
	err := w.verdict(op, mine.number)
	if err != nil {
		return err
	}
	state := recordNone
	switch {
	case left:
	case from >= 0 && (wait.Quiet() || w.Mapped(from)):
		state, err = w.compare(op, from, &mine)
	case from < 0 && wait.Long() && wait.Quiet():
		if leaver, left = m.abandoner(); !left {
			from, state, err = w.compareAll(op, &mine)
		}
	}
	if err != nil || !left && state < recordPassed {
		return err
	}
	// Whatever a rank that has left, is ahead or shrinks has told this one is here now.
	w.catchUp()
	switch {
	case reached(word, number):
		return nil
	case left:
		return w.gone(op, mine.number, leaver)
	}
	return w.behind(op, from, &mine, state)
}

func (m *Meeting) meetAtRoot(ctx context.Context, op string, number uint32, history uint64, do func()) error {
	if m.announced != number {
		if err := m.arrive(ctx, op, number, history, m.histories+history, do); err != nil {
			return err
		}
		m.announced = number
		m.histories += history
	}
	if released := m.own.released(); !reached(released, number) {
		if err := m.hear(ctx, op, released, number, parent(m.world.rank)); err != nil {
			return err
		}
	}
	differing := called(m.own.differing().Load())
	if m.world.rank == 0 && m.own.passed().Load() == number {
		return compared(op, number, differing)
	}
	first, to := m.world.children(m.world.rank)
	for child := first; child < to; child++ {
		told := &m.told[child-first]
		if *told == number {
			continue
		}
		if m.world.Mapped(child) {
			if err := m.release(ctx, op, child, number, differing); err != nil {
				return err
			}
		} else if err := m.message(ctx, op, child, &Message{Kind: kindRelease, X: uint64(number), Y: uint64(differing)}); err != nil {
			return err
		}
		*told = number
	}
	return compared(op, number, differing)
}

// release releases a rank that is mapped.
func (m *Meeting) release(ctx context.Context, op string, rank int, number uint32, differing called) error {
	b, err := m.blockIn(ctx, op, rank)
	if err != nil {
		return err
	}
	b.tellDiffering(differing)
	b.released().Store(number)
	m.world.Ring(rank)
	return nil
}

// releaseRoot releases the root behind those that it releases, if they are all mapped: for the last to come.
// The root may leave as soon as it is released, and knows before that others may.
// It cannot fail, since it has been counted: if this rank cannot map some of those now, the root releases them.
func (m *Meeting) releaseRoot(ctx context.Context, op string, root *meetingBlock, number uint32, differing called) error {
	w, mapped := m.world, true
	child, to := w.children(0)
	for rank := child; rank < to && mapped; rank++ {
		if mapped = w.Mapped(rank) && w.Acquainted(rank); mapped {
			_, err := m.block(op, rank)
			mapped = err == nil
		}
	}
	root.tellDiffering(differing)
	if mapped {
		root.passed().Store(number)
		for ; child < to; child++ {
			if err := m.release(ctx, op, child, number, differing); err != nil {
				return err
			}
		}
	}
	root.released().Store(number)
	w.Ring(0)
	return nil
}

// arrive tells the root that this rank has come, with its history and their sum.
func (m *Meeting) arrive(ctx context.Context, op string, number uint32, history, histories uint64, do func()) error {
	if !m.world.Mapped(0) {
		return m.message(ctx, op, 0, &Message{Kind: kindArrive, A: m.mine.call(), X: uint64(number), Y: history, Z: histories})
	}
	root, err := m.blockIn(ctx, op, 0)
	if err != nil {
		return err
	}
	root.callers().note(m.mine.call(), m.world.rank)
	last, unlike := root.arrive(number, m.world.size, history, histories)
	switch {
	case unlike:
		return m.world.unlike(op, -1)
	case last:
		m.world.RaceAcquire()
		do()
		m.world.RaceRelease()
		return m.releaseRoot(ctx, op, root, number, root.differed())
	}
	return nil
}

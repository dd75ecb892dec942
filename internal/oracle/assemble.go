package oracle

import (
	"slices"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/window"
)

// assemble makes the steps of the phase from its sequences.
func (d *drawer) assemble() {
	for rank := range d.p.Ranks {
		for member := range d.members {
			streams := make([][]Step, len(d.p.Windows))
			for win := range streams {
				streams[win] = d.stream(win, rank, member)
			}
			d.phaseOf.Steps = append(d.phaseOf.Steps, d.join(streams, rank, member)...)
		}
	}
}

// stream returns the steps of a member on a window.
func (d *drawer) stream(win, rank, member int) []Step {
	var own, sequences []sequence
	for _, c := range d.sequences {
		switch {
		case c.rank != rank || c.member != member || c.steps[0].Window != win:
		case c.own:
			own = append(own, c)
		default:
			sequences = append(sequences, c)
		}
	}
	if d.phaseOf.Syncs[win].Mode != Locked {
		return d.mix(append(own, sequences...))
	}
	if member > 0 {
		return nil
	}
	for i := range sequences {
		if sequences[i].kind == 0 {
			sequences[i].kind = window.Shared
			if !d.loose && d.one(2) {
				sequences[i].kind = window.Exclusive
			}
		}
	}
	return d.mix(append(own, sequence{steps: d.sessions(win, rank, sequences)}))
}

// mix returns the steps of sequences. The steps of each sequence keep their order; the sequences are interleaved at random.
func (d *drawer) mix(sequences []sequence) (steps []Step) {
	left := slices.DeleteFunc(slices.Clone(sequences), func(c sequence) bool { return len(c.steps) == 0 })
	for len(left) > 0 {
		i := d.IntN(len(left))
		steps = append(steps, left[i].steps[0])
		if left[i].steps = left[i].steps[1:]; len(left[i].steps) == 0 {
			left = slices.Delete(left, i, i+1)
		}
	}
	return steps
}

// sessions puts sequences under locks.
func (d *drawer) sessions(win, rank int, sequences []sequence) []Step {
	step := func(call Call, target int, kind window.LockKind) Step {
		return Step{Rank: rank, Call: call, Window: win, Target: target, LockKind: kind}
	}
	exclusive := slices.ContainsFunc(sequences, func(c sequence) bool { return c.kind == window.Exclusive })
	if !exclusive && d.one(3) {
		return slices.Concat([]Step{step(LockAll, 0, 0)}, d.mix(sequences), []Step{step(UnlockAll, 0, 0)})
	}
	// A session is the sequences under one lock.
	type session struct {
		target    int
		kind      window.LockKind
		sequences []sequence
	}
	var sessions []session
	split := d.one(4)
	for _, c := range sequences {
		target := c.steps[0].Target
		i := slices.IndexFunc(sessions, func(s session) bool { return s.target == target && s.kind == c.kind })
		if i < 0 || split {
			i = len(sessions)
			sessions = append(sessions, session{target: target, kind: c.kind})
		}
		sessions[i].sequences = append(sessions[i].sequences, c)
	}
	if d.one(6) {
		sessions = append(sessions, session{d.IntN(d.p.Ranks), window.Shared, nil})
	}
	d.Shuffle(len(sessions), func(i, j int) { sessions[i], sessions[j] = sessions[j], sessions[i] })
	var begin, do, end, nested []Step
	if d.one(2) {
		// Some locks are held at the same time, one for each target.
		slices.SortStableFunc(sessions, func(a, b session) int { return a.target - b.target })
		var together []sequence
		last := -1
		sessions = slices.DeleteFunc(sessions, func(s session) bool {
			if s.target == last {
				return false
			}
			last = s.target
			begin = append(begin, step(Lock, s.target, s.kind))
			end = append(end, step(Unlock, s.target, 0))
			together = append(together, s.sequences...)
			return true
		})
		do = d.mix(together)
		d.Shuffle(len(end), func(i, j int) { end[i], end[j] = end[j], end[i] })
		nested = slices.Concat(begin, do, end)
	}
	for _, s := range sessions {
		nested = slices.Concat(nested, []Step{step(Lock, s.target, s.kind)}, d.mix(s.sequences), []Step{step(Unlock, s.target, 0)})
	}
	return nested
}

// join merges the steps on all windows into one stream and adds steps that may be anywhere. Locks are taken in an
// order that excludes deadlock.
func (d *drawer) join(streams [][]Step, rank, member int) (steps []Step) {
	c := newChecker(d.p)
	c.syncs = d.phaseOf.Syncs
	for win := range streams {
		e := c.of(win, rank)
		e.fenced = d.fenced[win]
		e.begin(&c.syncs[win], rank)
	}
	var requests []Step
	for {
		steps = d.extras(steps, c, &requests, rank, member)
		var ready []int
		for win, stream := range streams {
			if len(stream) > 0 && (stream[0].Call != Lock && stream[0].Call != LockAll || c.highestLock(rank) < c.lockOrder(&stream[0])) {
				ready = append(ready, win)
			}
		}
		if len(ready) == 0 {
			break
		}
		win := ready[d.IntN(len(ready))]
		s := streams[win][0]
		streams[win] = streams[win][1:]
		steps = append(steps, s)
		c.of(win, rank).step(&s)
		if s.Call.requests() {
			requests = append(requests, s)
		}
	}
	if member > 0 {
		return steps
	}
	// Waits come before loads that need them, and after all notifications of this rank.
	for _, s := range d.waits {
		if s.Rank == rank {
			steps = append(steps, s)
		}
	}
	return d.extras(steps, c, &requests, rank, member)
}

// extras may add a flush, a wait for a request, or a call that must be rejected.
func (d *drawer) extras(steps []Step, c *checker, requests *[]Step, rank, member int) []Step {
	win := d.IntN(len(d.p.Windows))
	if mode := c.syncs[win].Mode; (mode == Locked && member == 0 || mode == AllLocked) && d.one(6) {
		s := Step{Rank: rank, Member: member, Window: win, Call: Flush + Call(d.IntN(5))}
		if s.Call == Flush || s.Call == FlushLocal || s.Call == RFlush {
			s.Target = d.IntN(d.p.Ranks)
		}
		if len(d.p.refusals(&s, c.of(win, rank))) == 0 {
			if s.Call == RFlush {
				d.requests++
				s.Request = d.requests
				*requests = append(*requests, s)
			}
			steps = append(steps, s)
		}
	}
	if n := len(*requests); n > 0 && d.one(3) {
		i := d.IntN(n)
		s := Step{Rank: rank, Member: member, Window: (*requests)[i].Window, Call: Wait, Request: (*requests)[i].Request}
		if d.one(3) {
			s.Call = Test
		}
		steps = append(steps, s)
		if s.Call == Wait {
			*requests = slices.Delete(*requests, i, i+1)
		}
	}
	if member == 0 && d.one(8) {
		s := d.wrong(rank)
		if len(d.p.refusals(&s, c.of(s.Window, rank))) == 1 {
			steps = append(steps, s)
		}
	}
	return steps
}

// wrong draws a call that is likely to be rejected.
func (d *drawer) wrong(rank int) Step {
	s := Step{Rank: rank, Refused: true, Window: d.IntN(len(d.p.Windows)), Target: d.IntN(d.p.Ranks)}
	w := &d.p.Windows[s.Window]
	s.Kind = w.Kind
	if d.one(2) {
		return d.wrongCall(s)
	}
	s.Call, s.Count, s.Fill = Call(d.IntN(int(CompareAndSwap)+1)), 1+d.IntN(3), int64(d.IntN(100))
	if s.Call == FetchAndOp || s.Call == CompareAndSwap {
		s.Count = 0
	}
	if s.Call.combines() && s.Call != CompareAndSwap {
		s.Op = d.anyOp(s.Kind, false)
	}
	if s.Call.layouts() {
		s.From = Shape{Blocks: 1, Length: s.Count, Stride: s.Count}
		s.To, s.Count = s.From, 0
	}
	switch d.IntN(8) {
	case 0:
		s.At = w.Counts[s.Target] - d.IntN(2)
	case 1:
		s.At = -1 - d.IntN(3)
	case 2:
		s.Target = [2]int{-1, d.p.Ranks}[d.IntN(2)]
	case 3:
		if s.Call.layouts() {
			// Both layouts have four elements. The one that is written to overlaps itself.
			s.From, s.To = Shape{Blocks: 2, Length: 2, Stride: 2}, Shape{Blocks: 2, Length: 2, Stride: 1}
			if s.Call == GetLayout {
				s.From, s.To = s.To, s.From
			}
		}
	case 4:
		if s.Call.layouts() {
			s.From.Blocks++
		} else if s.Call.combines() && s.Call != CompareAndSwap {
			s.Op = [2]window.Op{77, window.And}[d.IntN(2)]
		}
	case 5:
		s.Nil = s.Call == FetchAndOp || s.Call == CompareAndSwap
	case 6:
		if s.Call == PutNotify {
			s.Slot = [2]int{-1, w.Slots}[d.IntN(2)]
		} else if s.Call == AccumulateLayout {
			s.To = Shape{Index: []window.Block{{Offset: 0, Length: 1}, {Offset: 1, Length: 2}}}
			s.From = Shape{Blocks: 1, Length: 3, Stride: 3}
		}
	}
	return s
}

// wrongCall makes s a call other than an operation.
func (d *drawer) wrongCall(s Step) Step {
	some := [...]Call{
		Flush, FlushLocal, FlushAll, FlushLocalAll, RFlush, Lock, Unlock, LockAll, UnlockAll, WaitNotify,
		Fence, Start, Post, Complete, WaitExposure, TestExposure, Close, Group, View,
	}
	s.Call = some[d.IntN(len(some))]
	if d.one(4) && s.Call <= Unlock {
		s.Target = [2]int{-1, d.p.Ranks}[d.IntN(2)]
	}
	switch s.Call {
	case FlushAll, FlushLocalAll, LockAll, UnlockAll:
		s.Target = 0
	case Lock:
		s.LockKind = window.LockKind(1 + d.IntN(2))
		if d.one(4) {
			s.LockKind = 9
		}
	case WaitNotify:
		s.Target, s.Slot = 0, d.p.Windows[s.Window].Slots
	case Fence:
		s.Target = 0
		if d.one(3) {
			s.Assert = 64
		}
	case Start, Post, Group:
		s.Ranks = append([]int{}, d.Perm(d.p.Ranks)[:1+d.IntN(d.p.Ranks)]...)
		if s.Target = 0; d.one(2) {
			s.Ranks = append(s.Ranks, [2]int{s.Ranks[0], d.p.Ranks}[d.IntN(2)])
		}
	case View:
		s.Kind = reduce.Kind(d.IntN(int(reduce.Kinds)))
		s.Target = 0
	case Flush, FlushLocal, RFlush, Unlock:
	default:
		s.Target = 0
	}
	if s.Call != View {
		s.Kind = 0
	}
	return s
}

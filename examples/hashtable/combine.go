package hashtable

import "math/bits"

// Operations of one kind on one key of an owner whose memory is not mapped are combined. The first of them in a Run,
// their leader, is carried out for all. They are concurrent with each other. So they may take effect in direct
// succession when the leader does, in the order in which they were queued. Of Puts the last value is set. Of Adds the
// sum is added. All Gets and Counts read the same. The first Delete finds the key and the others do not. Puts whose
// records need pieces of other sizes have other leaders: there may be space for one and not for the other.

// mostTries is the number of Batch.leaders with which an operation is compared. After that many others it leads no
// operation.
const mostTries = 8

// combine removes the active operations that have a leader. Moves have none: each is of another key.
func (b *Batch) combine() {
	n := len(b.active)
	if n < 2 || !b.table.combines || b.ops[b.active[0]].kind == opMove {
		return
	}
	size := 1 << bits.Len(uint(2*n-1))
	if len(b.leaders) < size {
		b.leaders = make([]int32, size)
	}
	leaders := b.leaders[:size]
	clear(leaders)
	leading := b.active[:0]
	for _, i := range b.active {
		if !b.follows(i, leaders) {
			leading = append(leading, i)
		}
	}
	b.combined += uint64(n - len(leading))
	b.active = leading
}

// follows reports whether operation i has a leader, and gives the leader what the operation would write. leaders has
// the leaders' numbers plus 1.
func (b *Batch) follows(i int32, leaders []int32) bool {
	op, mask := &b.ops[i], uint32(len(leaders)-1)
	for try := range uint32(mostTries) {
		at := &leaders[(op.home.low+try)&mask]
		if *at == 0 {
			*at = i + 1
			return false
		}
		leader := &b.ops[*at-1]
		if leader.home == op.home && leader.kind == op.kind && leader.key == op.key && leader.pieceWords() == op.pieceWords() {
			op.leader = *at
			leader.value = op.value
			leader.delta += op.delta
			return true
		}
	}
	return false
}

// shareResults gives combined operations their results. It goes backward, because a leader of Adds first has the sum
// after all of them.
func (b *Batch) shareResults(first int) {
	for i := len(b.ops) - 1; i >= first; i-- {
		op := &b.ops[i]
		if op.leader == 0 {
			continue
		}
		leader := &b.ops[op.leader-1]
		if op.err = leader.err; op.err != nil {
			continue
		}
		switch op.kind {
		case opPut:
			op.found = true
		case opAdd:
			op.found, op.count = true, leader.count
			leader.count -= op.delta
		case opGet, opCount:
			op.found, op.count, op.record = leader.found, leader.count, leader.record
		}
	}
}

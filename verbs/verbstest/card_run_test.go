package verbstest

import (
	"sync/atomic"
	"time"

	"github.com/onesided/rma/verbs"
)

// run carries out what can be.
func (p *cardPair) run() {
	if p.running {
		return
	}
	p.running = true
	defer func() { p.running = false }()
	for len(p.todo) > 0 && p.state != verbs.StateConnecting {
		r := p.todo[0]
		if p.state == verbs.StateError && !p.card.broken("what comes after Sever is carried out") {
			p.next()
			p.outstanding--
			p.sends.add(p, verbs.Completion{ID: r.ID, Status: verbs.StatusFlushed, Opcode: r.Opcode})
			continue
		}
		status, wait := p.carryOut(r.SendRequest)
		if wait || len(p.todo) == 0 {
			return
		}
		p.next()
		if status != verbs.StatusSuccess {
			if !(p.card.broken("failures of unsignalled requests are silent") && r.Flags&verbs.Signalled == 0) {
				p.sends.add(p, verbs.Completion{ID: r.ID, Status: status, Opcode: r.Opcode})
			}
			if !p.card.broken("the queue pair goes on after an error") {
				p.fail(status)
			}
			if p.card.broken("an error fails every queue pair") {
				for _, other := range p.card.pairs {
					other.fail(status)
				}
			}
			continue
		}
		if r.Flags&verbs.Signalled == 0 && !p.card.broken("unsignalled requests complete") {
			p.unanswered++
			if p.card.broken("unsignalled requests are not counted") {
				p.outstanding, p.unanswered = p.outstanding-1, p.unanswered-1
			}
			continue
		}
		p.outstanding -= p.unanswered + 1
		p.unanswered = 0
		p.sends.add(p, verbs.Completion{ID: r.ID, Opcode: r.Opcode})
	}
}

func length(segments []verbs.Segment) (n int) {
	for _, s := range segments {
		n += len(s.Memory)
	}
	return n
}

func gather(data []byte, segments []verbs.Segment) []byte {
	for _, s := range segments {
		data = append(data, s.Memory...)
	}
	return data
}

func (p *cardPair) scatter(segments []verbs.Segment, data []byte) {
	if p.card.broken("the last byte is dropped") && len(data) > 1000 {
		data = data[:len(data)-1]
	}
	for _, s := range segments {
		data = data[copy(s.Memory, data):]
	}
}

// local checks the segments of this side.
func (c *card) local(segments []verbs.Segment, right verbs.Access) bool {
	for _, s := range segments {
		r := c.keys[s.LKey]
		if r == nil || r.access&right != right || !within(r.memory, s.Memory) {
			return c.broken("segments are not checked")
		}
	}
	return true
}

func (p *cardPair) carryOut(r verbs.SendRequest) (status verbs.Status, wait bool) {
	n := length(r.Segments)
	var needs verbs.Access
	if r.Opcode >= verbs.OpRDMARead {
		needs = verbs.LocalWrite
	}
	if r.Flags&verbs.Inline == 0 && !p.card.local(r.Segments, needs) {
		return verbs.StatusLocalProtection, false
	}
	there := p.peer.card
	if !there.broken("what arrives is no activity") {
		there.activity++
	}
	if (r.Opcode >= verbs.OpRDMAWrite || there.broken("what is sent is counted as served")) && !there.broken("what is served is not counted") {
		there.served++
	}
	if p.peer.state == verbs.StateError && !p.card.broken("what comes after Sever is carried out") {
		return verbs.StatusRetryExceeded, false
	}
	if r.Opcode == verbs.OpRDMAWriteImmediate && len(p.peer.slots) == 0 && !p.card.broken("immediate data needs no receive") {
		return 0, true
	}
	switch r.Opcode {
	case verbs.OpSend, verbs.OpSendImmediate:
		p.data = gather(p.data[:0], r.Segments)
		return p.deliver(r, p.data)
	case verbs.OpRDMAWrite, verbs.OpRDMAWriteImmediate:
		target, ok := there.find(r.RemoteAddress, r.RKey, n, verbs.RemoteWrite)
		if !ok && p.card.broken("a write is placed before it is checked") {
			if target, ok = there.find(r.RemoteAddress, r.RKey, n, ^verbs.Access(0)); ok {
				copy(target, gather(p.data[:0], r.Segments))
			}
			return verbs.StatusRemoteAccess, false
		}
		if !ok {
			return verbs.StatusRemoteAccess, false
		}
		p.data = gather(p.data[:0], r.Segments)
		p.place(target)
		if r.Opcode == verbs.OpRDMAWriteImmediate {
			return p.deliver(r, nil)
		}
	case verbs.OpRDMARead:
		target, ok := there.find(r.RemoteAddress, r.RKey, n, verbs.RemoteRead)
		if !ok {
			return verbs.StatusRemoteAccess, false
		}
		p.data = append(p.data[:0], target...)
		p.scatter(r.Segments, p.data)
	default:
		target, ok := there.find(r.RemoteAddress, r.RKey, 8, verbs.RemoteAtomic)
		if !ok {
			return verbs.StatusRemoteAccess, false
		}
		if r.RemoteAddress%8 != 0 {
			return verbs.StatusRemoteInvalid, false
		}
		put64(r.Segments[0].Memory, p.atomic(word(target, 0), r))
	}
	return verbs.StatusSuccess, false
}

// place places the data of a write.
func (p *cardPair) place(target []byte) {
	broken := p.card.broken("words overtake")
	if n := len(target); n != 8 || !aligned(target, 8) {
		if broken && n > 8 {
			p.late, p.lateData = target, append([]byte(nil), p.data...)
			return
		}
		p.scatter([]verbs.Segment{{Memory: target}}, p.data)
		return
	}
	atomic.StoreUint64(word(target, 0), get64(p.data))
	if broken {
		// The clock is that of TestDefects: it moves when whoever looks at the word has looked.
		p.card.mu.Unlock()
		time.Sleep(time.Millisecond) // computes
		p.card.mu.Lock()
		copy(p.late, p.lateData)
	}
}

func (p *cardPair) atomic(w *uint64, r verbs.SendRequest) uint64 {
	if p.card.broken("atomics are not atomic") && r.Opcode == verbs.OpFetchAdd {
		old := atomic.LoadUint64(w)
		p.card.mu.Unlock()
		// In virtual time, so that all others come to read the word meanwhile.
		time.Sleep(time.Nanosecond) // computes
		p.card.mu.Lock()
		atomic.StoreUint64(w, old+r.Operand)
		return old
	}
	if r.Opcode == verbs.OpFetchAdd {
		return atomic.AddUint64(w, r.Operand) - r.Operand
	}
	for {
		old := atomic.LoadUint64(w)
		if old != r.Compare || atomic.CompareAndSwapUint64(w, old, r.Operand) {
			return old
		}
	}
}

// deliver gives a message, or the notice of a write with immediate, to the
// peer's next receive.
func (p *cardPair) deliver(r verbs.SendRequest, data []byte) (verbs.Status, bool) {
	q := p.peer
	if len(q.slots) == 0 {
		return 0, !p.card.broken("immediate data needs no receive")
	}
	slot := q.slots[0]
	q.slots = q.slots[:copy(q.slots, q.slots[1:])]
	defer func() { q.spare = append(q.spare, slot) }()
	c := verbs.Completion{ID: slot.ID, Opcode: verbs.OpReceive, Bytes: uint32(len(data))}
	if r.Opcode != verbs.OpSend {
		c.Opcode, c.Immediate = verbs.OpReceiveImmediate, r.Immediate
		if p.card.broken("immediate data is lost") {
			c.Immediate = 0
		}
	}
	if r.Opcode == verbs.OpRDMAWriteImmediate {
		c.Bytes = uint32(length(r.Segments))
		q.receives.add(q, c)
		return verbs.StatusSuccess, false
	}
	if !q.card.local(slot.Segments, verbs.LocalWrite) {
		q.receives.add(q, verbs.Completion{ID: slot.ID, Status: verbs.StatusLocalProtection})
		q.fail(verbs.StatusLocalProtection)
		return verbs.StatusRemoteOperation, false
	}
	if len(data) > length(slot.Segments) {
		if p.card.broken("a long message is cut") {
			data = data[:length(slot.Segments)]
		} else {
			if p.card.broken("a long message spills") {
				copy(q.card.from(slot.Segments[0].Memory), data)
			}
			q.receives.add(q, verbs.Completion{ID: slot.ID, Status: verbs.StatusLocalLength})
			q.fail(verbs.StatusLocalLength)
			return verbs.StatusRemoteInvalid, false
		}
	}
	if p.card.broken("sends overtake") && len(q.slots) > 0 {
		p.scatter(q.slots[0].Segments, data)
	} else {
		p.scatter(slot.Segments, data)
	}
	q.receives.add(q, c)
	return verbs.StatusSuccess, false
}

package tcp

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
)

const (
	scratchBytes = 8 << 10
	// smallPayload is the longest payload that is copied after its header, because the system takes longer for an entry
	// of its list.
	smallPayload = 512
	// batchBytes is the length from which on a batch gets no more frames. The last two, a response and a request, may
	// each exceed it by a payload.
	batchBytes = 1 << 20
	// maxWriteRounds bounds how many batches one visit sends, visitBytes their length without the last, because other
	// connections wait.
	maxWriteRounds = 16
	visitBytes     = 4 << 20
)

// output makes batches of frames. A batch is made when the previous one has left. It leaves as it was made.
type output struct {
	// batch is the memory of the batch. It is nil if there is no batch, or only a copy that detach made. scratch and
	// vectors are the parts of it in use. The vectors from first on have not left.
	batch   *batch
	scratch []byte
	vectors [][]byte
	first   int
	bytes   int
	// joined: the last vector ends where the next bytes of scratch begin.
	joined bool
	// loan is the region, of the peer's reads, in which vectors may lie.
	loan *region
	// through is the last request of this side that is wholly in a batch, left the last whose batches have all left.
	through, left uint32

	// What is owed to the peer:
	accept, acknowledge, ping, pong bool
	rejected                        bool
	reason                          string
	requestRejected                 bool
	requestRejection                frame
	bye                             uint64
	// written: the unacknowledged requests include a write.
	written bool
	// said: the last frame is in a batch. ended: it has left. broken: nothing leaves any more.
	said, ended, broken bool
	// cause is why nothing leaves. A later read does not report it again.
	cause error
}

// resetOutput drops all output.
func (c *connection) resetOutput() {
	c.endBatch()
	o := &c.out
	*o = output{through: o.through, left: o.left, requestRejected: o.requestRejected}
}

// stuck reports whether output waits for the peer to read.
func (c *connection) stuck() bool {
	return c.out.first < len(c.out.vectors) || c.stream != nil && c.stream.pending()
}

// transmit sends what can be sent.
func (c *connection) transmit() {
	bytes := 0
	for round := 0; c.stream != nil; round++ {
		bytes += c.out.bytes
		if c.stuck() && !c.write() || round == maxWriteRounds || bytes >= visitBytes {
			c.block()
			return
		}
		if c.stream == nil || !c.fill() {
			break
		}
	}
	if c.stream == nil {
		return
	}
	c.unblock()
	if c.phase == phaseShutdown && !c.out.ended {
		c.out.ended = true
		if c.out.broken {
			c.shut()
			return
		}
		c.stream.end()
	}
}

// fewBlocked is the number of blocked connections that each poll tries again.
const fewBlocked = 2

// block marks a connection whose output waits for room. The driver polls few such connections itself; the poller must
// wake sleepers, and handles many. The store of the mark precedes the load of sleepers here, and a sleeper's
// announcement precedes its load of marks; so one sees the other.
func (c *connection) block() {
	if c.stream == nil {
		return
	}
	d := c.device
	if !c.blocked.Swap(true) {
		d.blocked.Add(1)
	}
	if d.channel.sleepers.Load() > 0 || d.blocked.Load() > fewBlocked {
		c.arm(true)
	}
}

// unblock undoes block.
func (c *connection) unblock() {
	if c.blocked.Load() {
		c.blocked.Store(false)
		c.device.blocked.Add(-1)
		c.arm(false)
	}
}

// arm sets whether the poller waits for room for output.
func (c *connection) arm(output bool) {
	if c.armed != output && c.stream != nil {
		c.armed = output
		c.device.rearm(c, output)
	}
}

// write sends the batch as far as possible, and reports whether all of it has left.
func (c *connection) write() bool {
	o := &c.out
	if o.loan != nil && !o.loan.keep() {
		// The frame that promised the bytes has begun to leave and cannot be taken back.
		c.fail(errWithdrawn, shutdownNow)
		return true
	}
	n, err := c.stream.writev(o.vectors[o.first:])
	if o.loan != nil {
		o.loan.release()
	}
	switch {
	case err == nil:
	case errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.ETIMEDOUT):
		// The peer's last frames may still be unread. The end is found by reading.
		c.endBatch()
		o.broken, o.cause = true, err
		return true
	default:
		c.lost(err)
		return true
	}
	if n > 0 {
		c.health.moved, c.sent = true, true
	}
	for n > 0 {
		v := &o.vectors[o.first]
		if n < len(*v) {
			*v = (*v)[n:]
			break
		}
		n -= len(*v)
		*v = nil
		o.first++
	}
	if o.first < len(o.vectors) || c.stream.pending() {
		return false
	}
	c.endBatch()
	if o.left != o.through {
		o.left = o.through
		if c.pair != nil && c.phase == phaseReady {
			c.pair.settleSends()
		}
	}
	return true
}

// beginBatch takes memory for a batch if the connection has none. A copy that detach has made comes first in the batch.
func (c *connection) beginBatch() {
	if o := &c.out; o.batch == nil {
		o.batch = c.device.batches.take()
		o.scratch, o.vectors = o.batch.scratch[:0], append(o.batch.vectors[:0], o.vectors...)
	}
}

// endBatch drops the batch and puts its memory back.
func (c *connection) endBatch() {
	o := &c.out
	if o.batch != nil {
		clear(o.vectors)
		c.device.batches.put(o.batch)
	}
	o.batch, o.scratch, o.vectors = nil, nil, nil
	o.first, o.bytes, o.joined, o.loan = 0, 0, false, nil
}

// settle copies what is left of the batch, because its memory belongs to the owners again. It returns false if the
// memory is already gone.
func (c *connection) settle() bool {
	o := &c.out
	if !o.requestRejected {
		c.responses.clear()
	}
	return !c.stuck() || c.detach()
}

// detach copies what is left of the batch. It returns false if its memory is gone.
func (c *connection) detach() bool {
	o := &c.out
	if o.loan != nil && !o.loan.keep() {
		return false
	}
	rest := slices.Concat(o.vectors[o.first:]...)
	if o.loan != nil {
		o.loan.release()
	}
	c.endBatch()
	if len(rest) > 0 {
		o.vectors = [][]byte{rest}
	}
	return true
}

// fill makes a batch of what there is to send, and reports whether there is any.
func (c *connection) fill() bool {
	o := &c.out
	if o.broken || o.said {
		return false
	}
	c.fillControl()
	if c.phase == phaseReady || c.phase == phaseShutdown {
		// Responses and requests alternate, so that neither direction waits for the other.
		for o.roomy() && (o.bytes == 0 || c.device.options.has(Batches)) {
			responded := c.fillResponse()
			requested := c.phase == phaseReady && c.fillRequest()
			if !responded && !requested {
				break
			}
		}
	}
	if c.phase == phaseShutdown {
		c.fillLast()
	}
	if len(o.vectors) == 0 && c.phase == phaseReady && (o.acknowledge && !c.delayed.Load() || c.grantDue()) {
		c.put(&frame{kind: kindAcknowledge})
	}
	return len(o.vectors) > 0
}

func (o *output) roomy() bool {
	return o.bytes < batchBytes && len(o.scratch)+2*(maxHeader+smallPayload) <= scratchBytes &&
		len(o.vectors)+2*(maxSegments+2) <= maxVectors
}

// fillControl adds the frames that belong to no request.
func (c *connection) fillControl() {
	o := &c.out
	if o.accept {
		o.accept = false
		c.put(&frame{kind: kindAccept})
	}
	if o.ping {
		o.ping = false
		c.put(&frame{kind: kindPing})
	}
	if o.pong {
		o.pong = false
		c.put(&frame{kind: kindPong})
	}
}

// fillLast adds the last frames, once the responses before them are in a batch.
func (c *connection) fillLast() {
	o := &c.out
	if c.responses.count > 0 || !o.roomy() {
		return
	}
	switch {
	case o.requestRejected:
		c.put(&o.requestRejection)
	case o.rejected:
		c.put(&frame{kind: kindReject, length: uint32(len(o.reason))})
		copy(o.grow(len(o.reason)), o.reason)
	default:
		c.put(&frame{kind: kindBye, operand: o.bye})
	}
	o.said = true
}

// grow adds n bytes of scratch to the batch.
func (o *output) grow(n int) []byte {
	at := len(o.scratch)
	o.scratch = o.scratch[:at+n]
	if o.joined {
		last := &o.vectors[len(o.vectors)-1]
		*last = (*last)[:len(*last)+n]
	} else {
		o.vectors = append(o.vectors, o.scratch[at:])
		o.joined = true
	}
	o.bytes += n
	return o.scratch[at:]
}

// put adds a header, which carries the pending acknowledgements and grants.
func (c *connection) put(f *frame) {
	f.acked, f.granted = c.in.carried, c.requests.posted
	c.requests.announced = f.granted
	c.out.acknowledge, c.out.written = false, false
	c.endDelay()
	c.beginBatch()
	f.encode(c.out.grow(f.size()))
	if f.kind != kindAcknowledge {
		c.device.frames.Add(1)
	}
}

// putSegments adds a header and its payload, the bytes of segments from skip on.
func (c *connection) putSegments(f *frame, segments []verbs.Segment, skip int) {
	c.put(f)
	o, n := &c.out, int(f.length)
	if n == 0 {
		return
	}
	if n > smallPayload || !c.device.options.has(Copies) {
		o.vectors = appendPart(o.vectors, segments, skip, n)
		o.joined = false
		o.bytes += n
		return
	}
	to := o.grow(n)
	for i := range segments {
		memory := segments[i].Memory
		if skip >= len(memory) {
			skip -= len(memory)
			continue
		}
		if to = to[copy(to, memory[skip:]):]; len(to) == 0 {
			return
		}
		skip = 0
	}
}

// putRegion adds a header and its payload: bytes of a region, or old instead. It returns false, and adds nothing, if
// the region has ended.
func (c *connection) putRegion(f *frame, r *region, address uint64, old []byte) bool {
	o, n := &c.out, int(f.length)
	c.beginBatch() // before the region's lock is held
	memory, ok := r.hold(address, n)
	if !ok {
		return false
	}
	defer r.release()
	if old != nil {
		memory = old
	}
	c.put(f)
	if n <= smallPayload && c.device.options.has(Copies) {
		copy(o.grow(n), memory)
		return true
	}
	o.vectors = append(o.vectors, memory)
	o.joined, o.loan = false, r
	o.bytes += n
	return true
}

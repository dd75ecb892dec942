package tcp

import (
	"encoding/binary"
	"fmt"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

const (
	lookAhead = 8 << 10
	// maxReadRounds bounds how long one visit reads, because other connections wait.
	maxReadRounds = 16
)

// An inputBuffer is the look-ahead of the connection that receives. It holds nothing between two calls of receive.
type inputBuffer struct {
	ahead   [lookAhead]byte
	vectors [maxSegments + 1][]byte
}

// input takes a stream of frames apart. A header, and what one read returns with it, passes through the look-ahead. The
// rest of a payload is read directly to its destination. A payload of one word is stored at once. Between reads, either
// payload is missing and the look-ahead is empty, or it holds part of a header or of a word.
type input struct {
	// The bytes of the look-ahead from start to end are not processed yet. Between two calls of receive they are in
	// partial, and start is 0.
	start, end int
	// partial is part of a header or of a word.
	partial [maxHeader]byte

	// headerSizes are the sizes of the last header and of the one before. missing is how much of the last frame's payload
	// has not arrived, place where it goes.
	headerSizes [2]int
	missing     int
	place       place
	// region is the destination if place is placeRegion. offset is how much of the message is already placed.
	region *region
	offset int
	// reason is the text of a rejection.
	reason []byte

	// begun is the number of the last request whose frames have begun to arrive, carried that of the last request
	// executed.
	begun, carried uint32
	// message is the current send or write, done how much of it is placed.
	message frame
	open    bool
	done    int
}

type place uint8

const (
	placeNowhere place = iota
	placeRegion
	placeReceive
	placeResponse
	placeReason
)

func (in *input) reset() {
	*in = input{begun: in.begun, carried: in.carried}
}

// receive processes input, for a bounded time, and reports whether there was any. buffer is in no other use.
func (c *connection) receive(buffer *inputBuffer) (some bool) {
	in := &c.in
	if in.end > 0 {
		copy(buffer.ahead[:], in.partial[:in.end])
	}
	some = c.readRounds(buffer)
	if in.end > 0 {
		copy(in.partial[:], buffer.ahead[:in.end])
	}
	return some
}

// readRounds processes the input that follows what is in the look-ahead.
func (c *connection) readRounds(buffer *inputBuffer) (some bool) {
	for range maxReadRounds {
		n, room, err := c.read(buffer)
		if n > 0 {
			some = true
			c.health.received = true
			c.process(buffer)
		}
		if c.stream == nil {
			return some
		}
		if err != nil {
			c.lost(err)
			return some
		}
		if n < room {
			return some
		}
	}
	// The stream may already have buffered the input, which no socket reports.
	c.wantVisit()
	c.device.channel.Wake()
	return true
}

// read reads once. It returns how many bytes it got and how many it had room for.
func (c *connection) read(buffer *inputBuffer) (n, room int, err error) {
	in := &c.in
	if c.phase == phaseShutdown {
		in.start, in.end, in.missing = 0, 0, 0
	}
	rest := buffer.ahead[in.end:]
	if in.missing == 0 || in.word() {
		n, err = c.stream.read(rest)
		in.end += n
		return n, len(rest), err
	}
	vectors, ok := c.borrow(buffer.vectors[:0], in.missing)
	if !ok {
		return 0, 1, nil
	}
	missing := in.missing
	if missing >= lookAhead && c.device.options.has(HeaderReads) {
		// A long payload is likely followed by another, which is to be read directly to its destination. Its frame has the
		// kind of this frame or, if both directions are busy, that of the frame before.
		rest = rest[:max(in.headerSizes[0], in.headerSizes[1])]
	}
	vectors = append(vectors, rest)
	n, err = c.stream.readv(vectors)
	c.giveBack()
	clear(vectors)
	direct := min(n, missing)
	in.end += n - direct
	if direct > 0 {
		c.placed(direct)
	}
	return n, missing + len(rest), err
}

// wordBytes is the length of a write that is stored at once if it is aligned.
const wordBytes = 8

// word reports whether the missing payload is the whole of a write of one word.
func (in *input) word() bool {
	return in.missing == wordBytes && in.place == placeRegion && in.message.total == wordBytes
}

// borrow appends to vectors the destinations of the next n bytes of the payload. It holds the memory of a region until
// giveBack. If the region has ended, borrow rejects the request and ok is false.
func (c *connection) borrow(vectors [][]byte, n int) ([][]byte, bool) {
	in := &c.in
	switch in.place {
	case placeRegion:
		memory, ok := in.region.hold(in.message.address+uint64(in.offset), n)
		if !ok {
			c.rejectRequest(in.message.request, verbs.StatusRemoteAccess)
			return vectors, false
		}
		vectors = append(vectors, memory)
	case placeReceive:
		vectors = appendPart(vectors, c.pair.receives[c.pair.receiveFirst].segments, in.offset, n)
	case placeResponse:
		vectors = appendPart(vectors, c.pair.reading().Segments, in.offset, n)
	case placeReason:
		vectors = append(vectors, in.reason[in.offset:in.offset+n])
	}
	return vectors, true
}

func (c *connection) giveBack() {
	if c.in.missing > 0 && c.in.place == placeRegion {
		c.in.region.release()
	}
}

// placed counts n bytes of payload as placed.
func (c *connection) placed(n int) {
	in := &c.in
	in.missing -= n
	in.offset += n
	if in.missing == 0 {
		c.payloadDone()
	}
}

// process takes apart what is in the look-ahead.
func (c *connection) process(buffer *inputBuffer) {
	in, ahead := &c.in, &buffer.ahead
	for c.phase < phaseShutdown {
		if in.missing > 0 {
			n := min(in.missing, in.end-in.start)
			word := in.word()
			if n == 0 || word && n < wordBytes {
				break
			}
			vectors, ok := c.borrow(buffer.vectors[:0], n)
			if !ok {
				break
			}
			from := ahead[in.start : in.start+n]
			if word && bounds.Address(vectors[0])%wordBytes == 0 {
				bounds.Word(vectors[0]).Store(binary.NativeEndian.Uint64(from))
			} else {
				for _, to := range vectors {
					from = from[copy(to, from):]
				}
			}
			c.giveBack()
			clear(vectors)
			in.start += n
			c.placed(n)
			continue
		}
		var f frame
		size, err := f.decode(ahead[in.start:in.end])
		if err != nil {
			c.fail(fmt.Errorf("tcp: %s: %w", c.peer, err), shutdownNow)
			break
		}
		if size == 0 {
			break
		}
		in.start += size
		in.headerSizes = [2]int{size, in.headerSizes[0]}
		c.take(&f)
	}
	if c.phase >= phaseShutdown {
		in.start, in.end = 0, 0
		return
	}
	in.end = copy(ahead[:], ahead[in.start:in.end])
	in.start = 0
}

// take acts on a header.
func (c *connection) take(f *frame) {
	if !c.count(f) {
		return
	}
	switch {
	case f.kind == kindPing:
		c.out.pong = true
	case f.kind == kindPong || f.kind == kindAcknowledge:
	case f.kind == kindBye:
		c.takeBye(f)
	case c.phase == phaseAwaiting && f.kind == kindAccept:
		c.phase = phaseReady
		c.pair.state.Store(uint32(verbs.StateReady))
		c.device.channel.Wake()
	case c.phase == phaseAwaiting && f.kind == kindReject:
		c.in.reason = make([]byte, f.length)
		c.expect(f, placeReason, 0)
	case c.phase != phaseReady:
		c.violation("%v frame before the connection was accepted", f.kind)
	default:
		c.takeReady(f)
	}
}

func (c *connection) takeReady(f *frame) {
	switch f.kind {
	case kindSend, kindWrite, kindWriteImmediate:
		c.takeMessage(f)
	case kindRead, kindFetchAdd, kindCompareSwap:
		c.takeReadOrAtomic(f)
	case kindReadResponse, kindAtomicResponse:
		c.takeResponse(f)
	case kindRequestRejection:
		c.takeRequestRejection(f)
	default:
		c.violation("%v frame on a connection that is made", f.kind)
	}
}

// count processes the counters that every header carries.
func (c *connection) count(f *frame) bool {
	n := &c.requests
	if f.acked-n.acked > c.out.through-n.acked {
		c.violation("request %d acknowledged, the last that was sent is %d", f.acked, c.out.through)
		return false
	}
	if f.granted-n.peerGranted > maxDepth || f.granted-n.sent > maxDepth {
		c.violation("%d receives granted after %d, of which %d are used; at most %d can be posted", f.granted, n.peerGranted, n.sent, maxDepth)
		return false
	}
	n.peerGranted = f.granted
	if n.acked != f.acked {
		n.acked = f.acked
		c.pair.settleSends()
	}
	return c.phase < phaseShutdown
}

// expect directs the frame's payload to a place.
func (c *connection) expect(f *frame, to place, offset int) {
	c.in.place, c.in.offset, c.in.missing = to, offset, int(f.length)
	if f.length == 0 {
		c.payloadDone()
	}
}

// payloadDone finishes a frame whose payload is complete.
func (c *connection) payloadDone() {
	switch place := c.in.place; {
	case place == placeResponse:
		c.pair.responded(c.in.offset)
	case place == placeReason:
		c.fail(fmt.Errorf("tcp: %s: %w: %s", c.peer, verbs.ErrRejected, printable(c.in.reason)), shutdownNow)
	default:
		c.messagePlaced()
	}
}

func (c *connection) takeBye(f *frame) {
	why, class := "the peer's queue pair failed", verbs.ErrPeerGone
	switch f.operand {
	case byeClosed:
		why, class = "the peer closed its queue pair", verbs.ErrDisconnected
	case byeSevered:
		why, class = "the peer has taken this side for dead", verbs.ErrDisconnected
	}
	c.settleAll()
	c.fail(fmt.Errorf("tcp: %s: %s: %w", c.peer, why, class), shutdownNow)
}

// appendPart appends the n bytes of segments from skip on.
func appendPart(vectors [][]byte, segments []verbs.Segment, skip, n int) [][]byte {
	for i := range segments {
		memory := segments[i].Memory
		if skip >= len(memory) {
			skip -= len(memory)
			continue
		}
		part := memory[skip:min(len(memory), skip+n)]
		vectors = append(vectors, part)
		skip = 0
		if n -= len(part); n == 0 {
			break
		}
	}
	return vectors
}

// printable returns a text of the peer in printable form, for a message.
func printable(text []byte) string {
	quoted := fmt.Sprintf("%+q", text)
	return quoted[1 : len(quoted)-1]
}

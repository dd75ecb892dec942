package verbstest

import "github.com/onesided/rma/verbs"

// gather makes a request take n bytes of the stream's own memory, or inline bytes, and returns them. A fenced request
// may take what earlier reads brought.
func (s *stream) gather(w *work, n int) []byte {
	if n <= s.MaxInline && s.IntN(2) == 0 {
		data := noise(s.Uint64(), n)
		cut := s.IntN(n + 1)
		*w = w.inline(data, s.pieces(cut, n-cut)...)
		return data
	}
	from := sourceSize
	if w.Flags&verbs.Fence != 0 {
		from = s.results
	}
	var data []byte
	for _, length := range s.pieces(s.cuts(n)...) {
		at := s.IntN(from - length + 1)
		w.Named = append(w.Named, s.mine.at(at, at+length))
		data = append(data, s.mineHolds[at:at+length]...)
	}
	return data
}

// cuts splits n bytes into at most four pieces.
func (s *stream) cuts(n int) []int {
	var out []int
	for range s.IntN(4) {
		piece := s.IntN(n + 1)
		out = append(out, piece)
		n -= piece
	}
	return append(out, n)
}

// pieces joins pieces until the device takes so many segments.
func (s *stream) pieces(pieces ...int) []int {
	for len(pieces) > s.MaxSegments {
		last := len(pieces) - 1
		pieces[last-1] += pieces[last]
		pieces = pieces[:last]
	}
	return pieces
}

// scatter makes a read place data in memory that nothing else touches before the stream settles.
func (s *stream) scatter(w *work, data []byte) {
	pieces := s.pieces(s.cuts(len(data))...)
	for _, length := range pieces {
		gap := s.IntN(10)
		at := s.results + gap
		w.Named = append(w.Named, s.mine.at(at, at+length))
		data = data[copy(s.mineHolds[at:at+length], data):]
		s.results = at + length
	}
}

func (s *stream) atomic(w *work, word []byte) {
	old := get64(word)
	w.Operand, w.Compare = s.Uint64(), old
	if s.IntN(2) == 0 {
		w.Compare++
	}
	s.results = (s.results + 7) &^ 7
	w.Named = []segment{s.mine.at(s.results, s.results+8)}
	put64(s.mineHolds[s.results:], old)
	s.results += 8
	switch {
	case w.Opcode == verbs.OpFetchAdd:
		put64(word, old+w.Operand)
	case w.Compare == old:
		put64(word, w.Operand)
	}
}

// deliver gives a message to the model's next receive.
func (s *stream) deliver(m message) {
	s.messages = append(s.messages, m)
	s.waiting += len(m.data)
	s.match()
}

func (s *stream) match() {
	for len(s.messages) > 0 && len(s.receives) > 0 {
		m, r := s.messages[0], s.receives[0]
		s.messages, s.receives = s.messages[1:], s.receives[1:]
		s.waiting -= len(m.data)
		if m.has {
			s.wantReceived = append(s.wantReceived, gotImmediate(r.ID, m.length, m.immediate))
		} else {
			s.wantReceived = append(s.wantReceived, got(r.ID, m.length))
		}
		for _, segment := range r.Named {
			m.data = m.data[copy(s.inboxHolds[segment.From:segment.To], m.data):]
		}
	}
}

// receive posts a receive, if there is room, for the longest message or for the message that waits for it.
func (s *stream) receive() {
	room := 20_000
	if len(s.messages) > 0 {
		room = len(s.messages[0].data) + s.IntN(3)
	}
	// The other half of the inbox and of the queue is for messages that wait when the stream settles.
	if s.inboxed+room+40 < inboxSize/2 && s.posted < 50 {
		s.receiveInto(room)
	}
}

func (s *stream) receiveInto(room int) {
	r := slot{ID: s.id}
	s.id++
	s.posted++
	for _, length := range s.pieces(s.cuts(room)...) {
		at := s.inboxed + s.IntN(10)
		r.Named = append(r.Named, s.inbox.at(at, at+length))
		s.inboxed = at + length
	}
	s.say("receive %d: %d bytes", r.ID, room)
	s.to.receiveAll(r)
	s.receives = append(s.receives, r)
	s.match()
}

// receiveAll posts receives for all messages that wait.
func (s *stream) receiveAll() {
	for len(s.messages) > 0 {
		s.receiveInto(len(s.messages[0].data))
	}
}

package pipe

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/errtext"
)

const (
	lineBytes = 64
	headBytes = 8
)

// ErrProtocol is wrapped by errors about invalid values of the other side.
var ErrProtocol = errors.New("pipe: protocol broken")

// A Config is the size of a pipe, which both sides know.
type Config struct {
	// Lines is the number of lines of the ring, of 64 bytes each.
	Lines int
	// MaxMessage is the maximum length of a payload, in bytes. With its head it takes at most half of the lines.
	MaxMessage int
}

// linesOf returns how many lines a message of n bytes takes.
func linesOf(n int) int { return int(uint(headBytes+n+lineBytes-1) / lineBytes) }

// Bytes returns the size of a pipe's memory.
func (c *Config) Bytes() int {
	return lineBytes * (1 + c.Lines + linesOf(c.MaxMessage) - 1)
}

func (c *Config) check(memory []byte) error {
	switch {
	case c.MaxMessage < 1 || c.Lines < 4 || c.Lines > 1<<24 || c.MaxMessage > c.Lines*lineBytes || 2*linesOf(c.MaxMessage) > c.Lines:
		return fmt.Errorf("pipe: %s for messages of %s; allowed are 4 to %d lines, and messages of 1 byte to those that take half of them", errtext.Count(c.Lines, "line"), errtext.Count(c.MaxMessage, "byte"), 1<<24)
	case len(memory) < c.Bytes():
		return fmt.Errorf("pipe: %s of memory; it takes %d", errtext.Count(len(memory), "byte"), c.Bytes())
	case bounds.Address(memory)%headBytes != 0:
		return errors.New("pipe: the memory begins at no multiple of 8")
	}
	return nil
}

// word returns the word at a multiple of 8 bytes.
func word(memory []byte, at int) *atomic.Uint64 { return bounds.Word(memory[at : at+headBytes]) }

// cursor is where the next message begins in the ring.
type cursor struct {
	// ring is the memory of messages. Its first lines lines are the ring; the rest is for the last message of a lap.
	ring  []byte
	lines int
	most  int
	// at is the line. passed counts the lines used before it.
	at     int
	passed uint64
	// head is the first word of that line.
	head *atomic.Uint64
}

func newCursor(c *Config, memory []byte) cursor {
	ring := memory[lineBytes:c.Bytes()]
	return cursor{ring: ring, lines: c.Lines, most: c.MaxMessage, head: word(ring, 0)}
}

// payload returns the payload, of n bytes, of the message that begins here.
func (p *cursor) payload(n int) []byte { return p.ring[p.at*lineBytes+headBytes:][:n:n] }

// number returns the number of the message that begins here.
func (p *cursor) number() uint32 { return uint32(p.passed + 1) }

// after returns the line after a message of lines lines, where the next message begins. It also returns the number of
// lines of the ring that the first message takes.
func (p *cursor) after(lines int) (at, taken int) {
	if p.at+lines >= p.lines {
		return 0, p.lines - p.at
	}
	return p.at + lines, lines
}

// pass continues at the message that begins at a line, after one that takes taken lines.
func (p *cursor) pass(at, taken int) {
	p.at = at
	p.passed += uint64(taken)
	p.head = word(p.ring, at*lineBytes)
}

// A Writer is the sending side.
type Writer struct {
	cursor
	freed, left *atomic.Uint64
	// room is the number of lines known to be free.
	room int
}

// NewWriter returns the Writer of a pipe whose memory is zero.
func NewWriter(config Config, memory []byte) (*Writer, error) {
	if err := config.check(memory); err != nil {
		return nil, err
	}
	return &Writer{cursor: newCursor(&config, memory), freed: word(memory, 0), left: word(memory, headBytes), room: config.Lines}, nil
}

// Place returns the memory for the payload of the next message, n bytes, or nil if there is no room now. An error is
// about the reader, and final.
func (w *Writer) Place(n int) ([]byte, error) {
	// Send also stores to the head of the message after it.
	if uint(n-1) >= uint(w.most) || linesOf(n) >= w.room {
		return w.placeFreed(n)
	}
	return w.payload(n), nil
}

// placeFreed is Place if there may be room only after the reader has freed some.
func (w *Writer) placeFreed(n int) ([]byte, error) {
	if roomy, err := w.look(n); !roomy {
		return nil, err
	}
	return w.payload(n), nil
}

// look reads how much the reader has freed, and reports whether there is room for a message.
func (w *Writer) look(n int) (roomy bool, err error) {
	if n < 1 || n > w.most {
		return false, fmt.Errorf("pipe: a message of %s; allowed are 1 to %d", errtext.Count(n, "byte"), w.most)
	}
	freed, known := w.freed.Load(), w.passed-uint64(w.lines-w.room)
	if w.passed-freed > w.passed-known {
		return false, fmt.Errorf("%w: %s said to be free of %d to %d", ErrProtocol, errtext.Count(freed, "line"), known, w.passed)
	}
	w.room = w.lines - int(w.passed-freed)
	_, taken := w.after(linesOf(n))
	return taken < w.room, nil
}

// Send publishes a message of the first n bytes of the memory that Place returned last.
func (w *Writer) Send(n int) {
	head, number := w.head, w.number()
	at, taken := w.after(linesOf(n))
	w.pass(at, taken)
	w.room -= taken
	// The reader does not poll there before it has taken this message. A store would take the line away from it.
	if uint32(w.head.Load()) == w.number() {
		// Any other number will do; zero may be the expected one.
		w.head.Store(uint64(^w.number()))
	}
	head.Store(uint64(n)<<32 | uint64(number))
}

// Leave announces that nothing is stored in the pipe any more. This Writer must not be used after it.
func (w *Writer) Leave() { w.left.Store(1) }

// A Reader is the receiving side.
type Reader struct {
	cursor
	freed, left *atomic.Uint64
	// returned counts the lines given back. notified is the count that the writer can read.
	returned, notified uint64
	// given is the number of lines of the message that Next returned last, next the line of the message after it.
	given, next int
}

// NewReader returns the Reader of a pipe.
func NewReader(config Config, memory []byte) (*Reader, error) {
	if err := config.check(memory); err != nil {
		return nil, err
	}
	return &Reader{cursor: newCursor(&config, memory), freed: word(memory, 0), left: word(memory, headBytes)}, nil
}

// Next returns the next message, or nil if there is none. It returns the same message until Free. A faulty writer may
// change the message meanwhile. An error is about the writer, and final.
func (r *Reader) Next() ([]byte, error) {
	head := r.head.Load()
	if uint32(head) != r.number() {
		return nil, nil
	}
	n := int(head >> 32)
	if uint(n-1) >= uint(r.most) {
		return nil, r.broken("a message of %d bytes; allowed are 1 to %d", n, r.most)
	}
	r.next, r.given = r.after(linesOf(n))
	if used := int(r.passed-r.returned) + r.given; used > r.lines {
		return nil, r.broken("%d lines in use; allowed are %d", used, r.lines)
	}
	return r.payload(n), nil
}

func (r *Reader) broken(format string, is, allowed int) error {
	return fmt.Errorf("%w: "+format, ErrProtocol, is, allowed)
}

// Free gives back the room of the message that Next returned. It reports whether the writer was notified; the writer
// may be waiting for that.
func (r *Reader) Free() (notified bool) { return r.Return(r.Take()) }

// Take moves on to the message after the one that Next returned, and returns how many lines the message takes. The
// message stays valid until these lines are returned.
func (r *Reader) Take() (lines int) {
	lines, r.given = r.given, 0
	r.pass(r.next, lines)
	return lines
}

// Return gives back the room of the oldest messages taken, which have lines lines together. It reports whether the
// writer was notified, as Free does.
func (r *Reader) Return(lines int) (notified bool) {
	r.returned += uint64(lines)
	if 4*(r.returned-r.notified) < uint64(r.lines) {
		return false
	}
	r.notified = r.returned
	r.freed.Store(r.returned)
	return true
}

// Look returns the word to poll for the next message, and the number that its low 32 bits have when the message is
// there. Both are valid until Take or Free.
func (r *Reader) Look() (word *atomic.Uint64, number uint32) { return r.head, r.number() }

// Left reports whether the writer has left. The memory then belongs to the reader alone.
func (r *Reader) Left() bool { return r.left.Load() != 0 }

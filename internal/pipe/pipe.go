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

// ErrProtocol is wrapped by errors about what the other side says.
var ErrProtocol = errors.New("pipe: protocol broken")

// A Config is the shape of a pipe, which both sides know.
type Config struct {
	// Lines of the ring, of 64 bytes each.
	Lines int
	// MaxMessage is how long a payload may be, in bytes: with its head it takes half of the lines at most.
	MaxMessage int
}

// linesOf is how many lines a message of n bytes takes.
func linesOf(n int) int { return int(uint(headBytes+n+lineBytes-1) / lineBytes) }

// Bytes is how much memory a pipe takes.
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

// word is that at a multiple of 8 bytes.
func word(memory []byte, at int) *atomic.Uint64 { return bounds.Word(memory[at : at+headBytes]) }

// place is where the next message begins in the ring.
type place struct {
	// ring is the memory of messages, lines of which are the ring's own.
	ring  []byte
	lines int
	most  int
	// at is the line, passed counts the lines before it.
	at     int
	passed uint64
	// head is the word of that line.
	head *atomic.Uint64
}

func newPlace(c *Config, memory []byte) place {
	ring := memory[lineBytes:c.Bytes()]
	return place{ring: ring, lines: c.Lines, most: c.MaxMessage, head: word(ring, 0)}
}

// payload is that of the message which begins here, and has n bytes.
func (p *place) payload(n int) []byte { return p.ring[p.at*lineBytes+headBytes:][:n:n] }

// number is that of the message which begins here.
func (p *place) number() uint32 { return uint32(p.passed + 1) }

// behind is where the message after one of so many lines begins, and how many lines of the ring that
// one takes.
func (p *place) behind(lines int) (at, taken int) {
	if p.at+lines >= p.lines {
		return 0, p.lines - p.at
	}
	return p.at + lines, lines
}

// pass goes on to the message that begins at a line, behind one that takes so many.
func (p *place) pass(at, taken int) {
	p.at = at
	p.passed += uint64(taken)
	p.head = word(p.ring, at*lineBytes)
}

// A Writer is the side that sends.
type Writer struct {
	place
	freed, left *atomic.Uint64
	// room is how many lines are known to be free.
	room int
}

// NewWriter begins to write to a pipe, whose memory is zero.
func NewWriter(config Config, memory []byte) (*Writer, error) {
	if err := config.check(memory); err != nil {
		return nil, err
	}
	return &Writer{place: newPlace(&config, memory), freed: word(memory, 0), left: word(memory, headBytes), room: config.Lines}, nil
}

// Place is where the payload of the next message is to be stored, n bytes of it, nil if there is no room
// now. An error is about the reader, and final.
func (w *Writer) Place(n int) ([]byte, error) {
	// The head of the next message is stored, too.
	if uint(n-1) >= uint(w.most) || linesOf(n) >= w.room {
		return w.placeFreed(n)
	}
	return w.payload(n), nil
}

// placeFreed is Place where there is room only if the reader has freed some.
func (w *Writer) placeFreed(n int) ([]byte, error) {
	if roomy, err := w.look(n); !roomy {
		return nil, err
	}
	return w.payload(n), nil
}

// look looks at what the reader has freed, and tells whether there is room for a message.
func (w *Writer) look(n int) (roomy bool, err error) {
	if n < 1 || n > w.most {
		return false, fmt.Errorf("pipe: a message of %s; allowed are 1 to %d", errtext.Count(n, "byte"), w.most)
	}
	freed, known := w.freed.Load(), w.passed-uint64(w.lines-w.room)
	if w.passed-freed > w.passed-known {
		return false, fmt.Errorf("%w: %s said to be free of %d to %d", ErrProtocol, errtext.Count(freed, "line"), known, w.passed)
	}
	w.room = w.lines - int(w.passed-freed)
	_, taken := w.behind(linesOf(n))
	return taken < w.room, nil
}

// Send publishes a message of the first n bytes of what Place has given last.
func (w *Writer) Send(n int) {
	head, number := w.head, w.number()
	at, taken := w.behind(linesOf(n))
	w.pass(at, taken)
	w.room -= taken
	// The reader does not look there before it has taken this message. A store would take the line away from it.
	if uint32(w.head.Load()) == w.number() {
		// Any other number will do; zero may be the one that is due.
		w.head.Store(uint64(^w.number()))
	}
	head.Store(uint64(n)<<32 | uint64(number))
}

// Leave says that nothing is going to be stored in the pipe any more, not by this Writer either.
func (w *Writer) Leave() { w.left.Store(1) }

// A Reader is the side that receives.
type Reader struct {
	place
	freed, left *atomic.Uint64
	// returned counts the lines that were given back, of which the writer was told of told.
	returned, told uint64
	// given is how many lines of the ring the message takes that was given last, next the line of the
	// message after it.
	given, next int
}

// NewReader begins to read from a pipe.
func NewReader(config Config, memory []byte) (*Reader, error) {
	if err := config.check(memory); err != nil {
		return nil, err
	}
	return &Reader{place: newPlace(&config, memory), freed: word(memory, 0), left: word(memory, headBytes)}, nil
}

// Next is the next message, nil if there is none. It is the same until Free. A writer that keeps no rules may
// change it meanwhile. An error is about the writer, and final.
func (r *Reader) Next() ([]byte, error) {
	head := r.head.Load()
	if uint32(head) != r.number() {
		return nil, nil
	}
	n := int(head >> 32)
	if uint(n-1) >= uint(r.most) {
		return nil, r.broken("a message of %d bytes; allowed are 1 to %d", n, r.most)
	}
	r.next, r.given = r.behind(linesOf(n))
	if used := int(r.passed-r.returned) + r.given; used > r.lines {
		return nil, r.broken("%d lines in use; allowed are %d", used, r.lines)
	}
	return r.payload(n), nil
}

func (r *Reader) broken(format string, is, allowed int) error {
	return fmt.Errorf("%w: "+format, ErrProtocol, is, allowed)
}

// Free gives the room of the message that Next has given back, and tells whether the writer was told: it may
// wait for that.
func (r *Reader) Free() (told bool) { return r.Return(r.Take()) }

// Take passes over the message that Next has given, so that Next gives the one behind it, and tells how many
// lines it takes. It stays where it is until these are returned.
func (r *Reader) Take() (lines int) {
	lines, r.given = r.given, 0
	r.pass(r.next, lines)
	return lines
}

// Return gives back the room of the messages that were taken first, which take so many lines together. As Free
// it tells whether the writer was told.
func (r *Reader) Return(lines int) (told bool) {
	r.returned += uint64(lines)
	if 4*(r.returned-r.told) < uint64(r.lines) {
		return false
	}
	r.told = r.returned
	r.freed.Store(r.returned)
	return true
}

// Look is the word that tells whether Next is going to find something: then its low 32 bits are number. Both
// hold until Take or Free.
func (r *Reader) Look() (word *atomic.Uint64, number uint32) { return r.head, r.number() }

// Left tells whether the writer has left: the memory is the reader's alone.
func (r *Reader) Left() bool { return r.left.Load() != 0 }

package channel

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/onesided/rma/internal/bounds"
)

// The head word of a message has the payload's length in 32 bits, 24 bits of zero, and the flag. Its bytes arrive in
// ascending order, so the flag comes last. The tail word is the same.
const (
	lengthBits = 32
	flagShift  = 56
)

// The flags. A message whose tail word shows that it is complete has one of the first two: the one that makes the tail
// word differ from what is at its place. A message has whole if its head word is written by itself, after everything
// else, and there is no tail word.
const (
	flagOne uint64 = iota + 1
	flagOther
	flagWhole
)

func headWord(length int, flag uint64) uint64 { return uint64(length) | flag<<flagShift }

// A stamp goes with each message, by ring or eager. It has the message's number, and what the peer has to know of the
// other direction: the number of buffers of its ring ever freed, modulo 2^creditBits, and whether that ring is polled.
// uses says whether the sender may use its own ring before another stamp says that it is polled.
type stamp uint64

const (
	creditShift       = 32
	creditBits        = 30
	creditMask        = 1<<creditBits - 1
	polledBit   stamp = 1 << 62
	usesBit     stamp = 1 << 63
)

func (s stamp) sequence() uint32 { return uint32(s) }
func (s stamp) credits() uint32  { return uint32(s>>creditShift) & creditMask }

// since returns the difference of two counts of credits.
func since(later, earlier uint32) int { return int((later - earlier) & creditMask) }

// StampBytes is the length of a stamp, with which an eager message begins, little-endian.
const StampBytes = wordBytes

// A look is a poll of a word of memory that another processor or card writes. It finds whether a message begins there.
type look struct {
	word *atomic.Uint64
	// If pipe is set, there is a message when the masked word equals due; in a ring, when it differs from due.
	mask, due uint64
	pipe      bool
}

// ringLook returns a look at the head word of a ring, which is zero before the message.
func ringLook(head *atomic.Uint64) look { return look{word: head, mask: 1<<64 - 1} }

func (l *look) finds() bool { return (l.word.Load()&l.mask == l.due) == l.pipe }

// number converts a word between native byte order and little-endian.
func number(native uint64) uint64 {
	var bytes [wordBytes]byte
	binary.NativeEndian.PutUint64(bytes[:], native)
	return binary.LittleEndian.Uint64(bytes[:])
}

// word returns the word at an offset of a ring's memory. Both are multiples of 8.
func word(memory []byte, offset int) *atomic.Uint64 {
	return bounds.Word(memory[offset : offset+wordBytes])
}

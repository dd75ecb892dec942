package channel

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/onesided/rma/internal/bounds"
)

// The head word of a message, whose bytes come in rising order: the payload's length in 32
// bits, 24 that are zero, and the flag, which therefore comes last. The tail word is the same.
const (
	lengthBits = 32
	flagShift  = 56
)

// Flags. A message has one of the first two where its tail word tells that it is complete:
// that which makes the tail word differ from what is at its place. It has whole if its head
// word is written by itself, behind all else, and there is no tail word.
const (
	flagOne uint64 = iota + 1
	flagOther
	flagWhole
)

func headWord(length int, flag uint64) uint64 { return uint64(length) | flag<<flagShift }

// A stamp goes with each message, by ring or as a letter: its number in its direction; and
// what is to be told of the other: how many buffers of its ring were freed in all, modulo
// 2^creditBits, and whether that ring is polled. uses says whether the sender may use its
// own ring before it is told again that it is polled.
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

// since is how far a count of credits is behind a later one.
func since(later, earlier uint32) int { return int((later - earlier) & creditMask) }

// StampBytes is how long a stamp is. A letter begins with one, little-endian.
const StampBytes = wordBytes

// A look is at a word of memory that somebody else writes, for whether a message begins there.
type look struct {
	word *atomic.Uint64
	// The word has the due bits where mask does if there is a message in a pipe, and has not if there
	// is one in a ring.
	mask, due uint64
	pipe      bool
}

// ringLook is at the head word of a ring, which is zero before the message.
func ringLook(head *atomic.Uint64) look { return look{word: head, mask: 1<<64 - 1} }

func (l *look) finds() bool { return (l.word.Load()&l.mask == l.due) == l.pipe }

// number is the value of the bytes of a word, which are little-endian, and the other way
// round.
func number(native uint64) uint64 {
	var bytes [wordBytes]byte
	binary.NativeEndian.PutUint64(bytes[:], native)
	return binary.LittleEndian.Uint64(bytes[:])
}

// word is that of a ring at an offset, which is a multiple of 8, as its memory is.
func word(memory []byte, offset int) *atomic.Uint64 {
	return bounds.Word(memory[offset : offset+wordBytes])
}

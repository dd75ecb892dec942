package job

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// A ledger lies in a rank's block, after its two meetings. The owner writes records,
// the name of its last element type, its call, its plight and whether it shrinks; anyone writes the verdict. Every word is
// atomic, because readers do not wait for writers.
type ledger struct {
	records [ledgerDepth]record
	// name is that of the layout whose hash is kind.
	kind atomic.Uint64
	name [7]atomic.Uint64
	// call is that of the program that the owner sleeps in; callVersion is odd while it is written.
	callVersion atomic.Uint64
	call        [7]atomic.Uint64
	// plight is what the owner has slept long in.
	plight atomic.Uint64
	// verdict is a state and, in the high half, the number of a call.
	verdict atomic.Uint64
	// leaver is a rank + 1, or 0.
	leaver atomic.Uint64
	text   [38]atomic.Uint64
	// shrinks is 0, or recordShrinks while the owner is in Shrink, or recordGivenUp and, in the high half, the number of the call
	// that it has given up.
	shrinks atomic.Uint64
}

// A record is a signature; call has the number in its high half, root the root.
type record struct{ call, root, part, kind atomic.Uint64 }

const (
	// ledgerDepth is how many calls back a rank that has gone on can be compared. Of one that has
	// gone on further it is known only that its part is done.
	ledgerDepth  = 64
	ledgerOffset = 2 * MeetingBytes
	blockBytes   = ledgerOffset + int(unsafe.Sizeof(ledger{}))
)

// ledgerOver is sound for memory that is aligned to 8, which device memory is and
// ledgerOffset keeps, and which stays mapped as long as the device is open.
func ledgerOver(memory []byte) *ledger {
	memory = memory[:unsafe.Sizeof(ledger{})]
	return (*ledger)(unsafe.Pointer(unsafe.SliceData(memory)))
}

// storeText cuts text to what fits, and ends it with zeros.
func storeText(words []atomic.Uint64, text string) {
	for i := range words {
		var b [8]byte
		if 8*i < len(text) {
			copy(b[:], text[8*i:])
		}
		words[i].Store(binary.LittleEndian.Uint64(b[:]))
	}
}

func loadText(words []atomic.Uint64) string {
	text := make([]byte, 0, 8*len(words))
	for i := range words {
		text = binary.LittleEndian.AppendUint64(text, words[i].Load())
	}
	for i, c := range text {
		if c == 0 {
			return string(text[:i])
		}
	}
	return string(text)
}

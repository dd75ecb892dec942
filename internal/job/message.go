package job

import (
	"encoding/binary"
	"fmt"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// headerBytes start each message, in its first letter.
const headerBytes = 48

// header says what a message is, so that ranks that call different collectives, or
// one with different arguments, notice.
type header struct {
	signature
	// length of the message, without this, with stagedMark or rendezvousMark if it goes so.
	length uint64
	// history is a hash of all calls so far.
	history uint64
}

func (h *header) encode(into []byte) {
	_ = into[headerBytes-1]
	binary.LittleEndian.PutUint32(into[0:], h.call)
	binary.LittleEndian.PutUint32(into[4:], h.number)
	binary.LittleEndian.PutUint32(into[8:], h.root)
	binary.LittleEndian.PutUint32(into[12:], h.element)
	binary.LittleEndian.PutUint64(into[16:], h.kind)
	binary.LittleEndian.PutUint64(into[24:], h.part)
	binary.LittleEndian.PutUint64(into[32:], h.length)
	binary.LittleEndian.PutUint64(into[40:], h.history)
}

func (h *header) decode(from []byte) {
	_ = from[headerBytes-1]
	h.call = binary.LittleEndian.Uint32(from[0:])
	h.number = binary.LittleEndian.Uint32(from[4:])
	h.root = binary.LittleEndian.Uint32(from[8:])
	h.element = binary.LittleEndian.Uint32(from[12:])
	h.kind = binary.LittleEndian.Uint64(from[16:])
	h.part = binary.LittleEndian.Uint64(from[24:])
	h.length = binary.LittleEndian.Uint64(from[32:])
	h.history = binary.LittleEndian.Uint64(from[40:])
}

// parcel is a message on its way out or in: the header, then data. Its zero value
// has nowhere to go and is finished.
type parcel struct {
	rank   int
	header header
	data   []byte
	active bool
	addition
	begun bool
	done  int
	// Of one that goes by rendezvous: asked tells that the rank was told of the landing; place is that of the rank,
	// to which put bytes were written; unsettled tells that the data is the link's until mark is reached.
	asked, unsettled bool
	place            verbs.RemoteRegion
	put              int
	mark             Mark
}

func (p *parcel) finished() bool {
	return !p.active || p.begun && p.done == len(p.data) && !p.unsettled
}

// sent tells whether all of it has been.
func (p *parcel) sent() bool { return !p.active || p.begun && p.done == len(p.data) }

// wholeBytes is of what the data is a multiple that all letters but the last have: no element that has an Op
// is longer.
const wholeBytes = 16

// staged tells whether its data goes through the sender's staging.
func (p *parcel) staged() bool { return p.header.length&stagedMark != 0 }

// next is how long the next letter is, of which there are at most so many bytes.
func (p *parcel) next(most int) int {
	n := len(p.data) - p.done
	if !p.begun {
		n += headerBytes
	}
	if n > most {
		return most &^ (wholeBytes - 1)
	}
	return n
}

// pack writes the next letter.
func (p *parcel) pack(w *World, letter []byte) {
	if !p.begun {
		p.header.encode(letter)
		p.begun, letter = true, letter[headerBytes:]
	}
	n := copy(letter, p.data[p.done:])
	w.Copied(n)
	p.done += n
}

// unpack takes the next letter.
func (p *parcel) unpack(w *World, letter []byte) (err error) {
	if !p.begun {
		if letter, err = p.unpackHeader(letter); err != nil {
			return err
		}
	}
	return p.store(w, letter)
}

// unpackHeader takes the header off the first letter.
func (p *parcel) unpackHeader(letter []byte) ([]byte, error) {
	if len(letter) < headerBytes {
		return nil, &boxError{p.rank, fmt.Errorf("a message of %s has no header", errtext.Count(len(letter), "byte"))}
	}
	var h header
	if h.decode(letter); h != p.header {
		return nil, &strayError{p.rank, h.signature, p.header.signature}
	}
	return letter[headerBytes:], nil
}

// store takes the next piece of the data.
func (p *parcel) store(w *World, letter []byte) error {
	switch left := len(p.data) - p.done; {
	case len(letter) > left:
		return &boxError{p.rank, fmt.Errorf("%s more than the message has", errtext.Count(len(letter)-left, "byte"))}
	case len(letter) == 0 && left > 0:
		// Pieces without data could come for ever.
		return &boxError{p.rank, fmt.Errorf("%w: a piece of no bytes, while %s of the message have not come", ErrMessage, errtext.Count(left, "byte"))}
	}
	p.begun = true
	if p.kernel == nil {
		copy(p.data[p.done:], letter)
	} else {
		if len(letter)%p.size != 0 {
			return &boxError{p.rank, fmt.Errorf("%s of elements of %d", errtext.Count(len(letter), "byte"), p.size)}
		}
		p.add(p.data[p.done:], letter, p.done)
	}
	p.done += len(letter)
	w.Copied(len(letter))
	return nil
}

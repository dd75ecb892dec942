package job

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

// A long message between ranks that map each other's memory is not copied through a pipe: its sender
// copies pieces of it into memory of its own, and tells by letters of the pipe which, and the receiver takes them
// from there, or adds them to what it has. So the pieces of a message are copied on the one side while those before
// are on the other, and a rank that has no core now finds much when it gets one.
//
// A rank has one such memory for all that it sends, made when it first needs it. Nobody writes to memory of a program
// but the rank whose program it is, nor reads it: when a call has returned, by whatever error, its buffers are its
// caller's.

const (
	// stagedFrom is how long a message is at least that is staged: for it that pays.
	stagedFrom = 32 << 10
	// A piece is pieceBytes long, of which a rank has stagedPieces; few in a large world.
	pieceBytes        = 32 << 10
	stagedPieces      = 32
	largeStagedPieces = 4
	// shortestCut bounds how short pieces are used.
	shortestCut = 8 << 10
	// stagedMark is set in the length that a header tells of a message which is staged.
	stagedMark = 1 << 63
)

// A staging is memory for pieces of this rank's messages: a line for each, whose first word is 1 until the rank that
// it went to has taken it, and 0 where it is free; and the pieces.
type staging struct {
	region *Region
	// to is the rank that each piece went to last.
	to []int
	// next is the piece behind the one that was used last: ranks take them in that order, mostly.
	next int
}

func stagingPieces(size int) int {
	if size > largeWorld {
		return largeStagedPieces
	}
	return stagedPieces
}

func stagingBytes(pieces int) int { return pieces * (lineBytes + pieceBytes) }

// pieceOf is a piece in the memory of a staging.
func pieceOf(memory []byte, pieces, i int) []byte {
	return memory[pieces*lineBytes+i*pieceBytes:][:pieceBytes:pieceBytes]
}

// markOf is what a header of a message of so many bytes to or from a rank tells of the way it goes.
func (o *office) markOf(rank, bytes int) uint64 {
	switch {
	case o.world.settings.tuning.NoStaging:
	case o.piped(rank):
		if bytes >= stagedFrom {
			return stagedMark
		}
	case bytes >= o.world.rendezvousFrom():
		return rendezvousMark
	}
	return 0
}

// openStaging makes the memory, once.
func (o *office) openStaging() error {
	s, w := &o.staging, o.world
	if s.region != nil {
		return nil
	}
	pieces := stagingPieces(w.size)
	memory, err := w.home.device.AllocateMemory(stagingBytes(pieces))
	if err != nil {
		return err
	}
	region, err := w.registry.Devices().RegisterMapped(memory)
	if err != nil {
		return errors.Join(err, w.home.device.FreeMemory(memory))
	}
	s.region, s.to = region, make([]int, pieces)
	o.slabs = append(o.slabs, region)
	return nil
}

// wordOfPiece is that of a piece in the memory of a staging.
func wordOfPiece(memory []byte, i int) *atomic.Uint64 { return bounds.Word(memory[i*lineBytes:][:8]) }

// free is a free piece, -1 if there is none.
func (s *staging) free() (int, error) {
	memory := s.region.Memory()
	for k := range s.to {
		i := (s.next + k) % len(s.to)
		switch left := wordOfPiece(memory, i).Load(); left {
		case 0:
			return i, nil
		case 1:
		default:
			return -1, &boxError{s.to[i], fmt.Errorf("%w: %#x in the place of what tells whether a piece was taken", ErrMessage, left)}
		}
	}
	return -1, nil
}

// use has a free piece be on its way to a rank.
func (s *staging) use(i, rank int) {
	s.to[i], s.next = rank, (i+1)%len(s.to)
	wordOfPiece(s.region.Memory(), i).Store(1)
}

// cutOf is how long the pieces of a message are: it has several, so that both ranks copy at once.
func cutOf(bytes int) int { return min(max(bytes/4, shortestCut), pieceBytes) &^ (wholeBytes - 1) }

// A ticket tells of a piece: its number and how many bytes of it there are. The first of a message has its header
// before, and behind where the sender's staging is.
const (
	ticketBytes      = 8
	firstTicketBytes = headerBytes + ticketBytes + 3*8
)

// putStaged sends what there is room for of a parcel.
func (o *office) putStaged(p *parcel) (moved bool, err error) {
	out, err := o.writer(p.rank)
	if out == nil {
		return false, err
	}
	if err := o.openStaging(); err != nil {
		return false, &linkageError{p.rank, err}
	}
	s := &o.staging
	memory := s.region.Memory()
	for !p.finished() {
		i, err := s.free()
		if err != nil {
			return moved, err
		}
		if i < 0 {
			break
		}
		letter := ticketBytes
		if !p.begun {
			letter = firstTicketBytes
		}
		place, err := out.Place(letter)
		if err != nil {
			return moved, &boxError{p.rank, err}
		}
		if place == nil {
			break
		}
		n := copy(pieceOf(memory, len(s.to), i)[:cutOf(len(p.data))], p.data[p.done:])
		o.world.Copied(n)
		if !p.begun {
			p.header.encode(place)
			places := s.region.Remote()
			remote := o.world.Place(p.rank, &places)
			binary.LittleEndian.PutUint64(place[headerBytes+ticketBytes:], remote.Address)
			binary.LittleEndian.PutUint64(place[headerBytes+ticketBytes+8:], remote.Length)
			binary.LittleEndian.PutUint64(place[headerBytes+ticketBytes+16:], uint64(remote.RKey))
			p.begun, place = true, place[headerBytes:]
		}
		binary.LittleEndian.PutUint64(place, uint64(i)<<32|uint64(n))
		s.use(i, p.rank)
		p.done += n
		o.world.RaceRelease()
		out.Send(letter)
		o.world.Ring(p.rank)
		moved = true
	}
	return moved, nil
}

// getStaged takes what has come of a parcel.
func (o *office) getStaged(p *parcel) (moved bool, err error) {
	in, err := o.reader(p.rank)
	if in == nil {
		return false, err
	}
	with := o.with(p.rank)
	for !p.finished() {
		letter, err := o.letter(in, p.rank)
		if letter == nil {
			return moved, err
		}
		if !p.begun {
			if letter, err = p.unpackHeader(letter); err == nil {
				letter, err = o.mapStaging(p.rank, with, letter)
			}
			if err != nil {
				return moved, err
			}
		}
		if len(letter) != ticketBytes {
			return moved, &boxError{p.rank, fmt.Errorf("%w: a ticket of %d bytes", ErrMessage, len(letter))}
		}
		ticket := binary.LittleEndian.Uint64(letter)
		i, n := ticket>>32, ticket&(1<<32-1)
		pieces := uint64(stagingPieces(o.world.size))
		if i >= pieces || n > pieceBytes {
			return moved, &boxError{p.rank, fmt.Errorf("%w: %d bytes of piece %d; allowed are %d of one below %d", ErrMessage, n, i, pieceBytes, pieces)}
		}
		p.begun = true
		if err := p.store(o.world, pieceOf(with.staged, int(pieces), int(i))[:n]); err != nil {
			return moved, err
		}
		o.world.RaceRelease()
		wordOfPiece(with.staged, int(i)).Store(0)
		in.Free()
		o.world.Ring(p.rank)
		moved = true
	}
	return moved, nil
}

// mapStaging maps the staging of a rank, which the first ticket of a message tells, unless that was done.
// The rest of the letter is the ticket.
func (o *office) mapStaging(rank int, with *pipes, letter []byte) ([]byte, error) {
	if len(letter) != firstTicketBytes-headerBytes {
		return nil, &boxError{rank, fmt.Errorf("%w: a first ticket of %d bytes", ErrMessage, len(letter))}
	}
	place := verbs.RemoteRegion{Address: binary.LittleEndian.Uint64(letter[ticketBytes:]), Length: binary.LittleEndian.Uint64(letter[ticketBytes+8:]), RKey: uint32(binary.LittleEndian.Uint64(letter[ticketBytes+16:]))}
	if with.staged == nil || with.stagedAt != place {
		memory, err := o.mapOf(rank, place)
		if err != nil {
			return nil, err
		}
		if need := stagingBytes(stagingPieces(o.world.size)); len(memory) < need || bounds.Address(memory)%8 != 0 {
			return nil, &boxError{rank, fmt.Errorf("%w: a staging of %d bytes, not %d", ErrMessage, len(memory), need)}
		}
		with.staged, with.stagedAt = memory, place
	}
	return letter[:ticketBytes], nil
}

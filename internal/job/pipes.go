package job

import (
	"errors"
	"fmt"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/pipe"
	"github.com/onesided/rma/verbs"
)

// Ranks that map each other's memory have two pipes between them, in the memory of the one that
// writes. It makes one when it first sends something, and tells where in the block of the one that
// reads, which looks there until it has found it.

// pipes are those with one rank: nil until there is one.
type pipes struct {
	out *pipe.Writer
	in  *pipe.Reader
	// staged is the staging of the rank, mapped when it was first heard of.
	staged   []byte
	stagedAt verbs.RemoteRegion
}

// slabPipes is how many pipes have memory that is made at once, if there are as many ranks: to make some takes
// much longer than a message.
const slabPipes = 8

// A ring of pipes is so many lines: as many bytes as a core's first cache has, in a large world fewer.
// Letters are short enough that the one side writes while the other reads.
const (
	// largeWorld is the size from which on a rank may have so many pipes that they are smaller.
	largeWorld      = 64
	pipeLines       = 512
	smallPipeLines  = 64
	lettersOfPipe   = 4
	pipeLineBytes   = 64
	pipeLetterHeads = 8
)

// pipeShape is the same on every rank.
func pipeShape(size int) pipe.Config {
	lines := pipeLines
	if size > largeWorld {
		lines = smallPipeLines
	}
	return pipe.Config{Lines: lines, MaxMessage: lines/lettersOfPipe*pipeLineBytes - pipeLetterHeads}
}

func (o *office) with(rank int) *pipes {
	p := o.pipes[rank]
	if p == nil {
		p = new(pipes)
		o.pipes[rank] = p
	}
	return p
}

// writer is what this rank sends a rank messages by, nil if it cannot map that yet.
func (o *office) writer(rank int) (*pipe.Writer, error) {
	if p := o.pipes[rank]; p != nil && p.out != nil {
		return p.out, nil
	}
	return o.newWriter(rank)
}

func (o *office) newWriter(rank int) (*pipe.Writer, error) {
	p, w := o.with(rank), o.world
	if !w.approachable(rank) {
		return nil, nil
	}
	block, err := w.blockOf(rank)
	if err == nil && o.slabUsed == len(o.slab.Memory()) {
		err = o.newSlab()
	}
	if err != nil {
		return nil, &linkageError{rank, err}
	}
	if p.out, err = pipe.NewWriter(o.shape, o.slab.Memory()[o.slabUsed:]); err != nil {
		return nil, &linkageError{rank, err}
	}
	places := o.slab.Remote()
	traysOver(block, w.size)[w.rank].tell(w.Place(rank, &places), o.slabUsed)
	o.slabUsed += o.shape.Bytes()
	return p.out, nil
}

// newSlab makes memory for some pipes.
func (o *office) newSlab() error {
	w := o.world
	memory, err := w.home.device.AllocateMemory(min(w.size-1, slabPipes) * o.shape.Bytes())
	if err != nil {
		return err
	}
	region, err := w.registry.Devices().RegisterMapped(memory)
	if err != nil {
		return errors.Join(err, w.home.device.FreeMemory(memory))
	}
	o.slab, o.slabUsed, o.slabs = region, 0, append(o.slabs, region)
	return nil
}

// reader is what this rank takes a rank's messages from, nil if that has sent none yet.
func (o *office) reader(rank int) (*pipe.Reader, error) {
	if p := o.pipes[rank]; p != nil && p.in != nil {
		return p.in, nil
	}
	return o.newReader(rank)
}

func (o *office) newReader(rank int) (*pipe.Reader, error) {
	p, w := o.with(rank), o.world
	place, at, told := traysOver(w.block, w.size)[rank].look()
	if !told || !w.approachable(rank) {
		return nil, nil
	}
	memory, err := o.mapOf(rank, place)
	switch {
	case err != nil:
		return nil, err
	case at > uint64(len(memory)):
		return nil, &boxError{rank, fmt.Errorf("%w: a pipe at %d of %s", ErrMessage, at, errtext.Count(len(memory), "byte"))}
	}
	if p.in, err = pipe.NewReader(o.shape, memory[at:]); err != nil {
		return nil, &boxError{rank, err}
	}
	return p.in, nil
}

// mapOf maps memory of which a rank has told.
func (o *office) mapOf(rank int, place verbs.RemoteRegion) ([]byte, error) {
	n, err := o.world.Neighbor(rank)
	if err != nil {
		return nil, &linkageError{rank, err}
	}
	memory, err := n.Map(place)
	switch {
	case errors.Is(err, verbs.StatusRemoteAccess):
		// The rank has told of what it has not got.
		return nil, &boxError{rank, err}
	case err != nil:
		return nil, &linkageError{rank, err}
	}
	return memory, nil
}

// put sends what there is room for of a parcel.
func (o *office) put(p *parcel) (moved bool, err error) {
	out, err := o.writer(p.rank)
	if out == nil {
		return false, err
	}
	for !p.finished() {
		n := p.next(o.shape.MaxMessage)
		place, err := out.Place(n)
		if err != nil {
			return moved, &boxError{p.rank, err}
		}
		if place == nil {
			break
		}
		p.pack(o.world, place)
		o.world.RaceRelease()
		out.Send(n)
		o.world.Ring(p.rank)
		moved = true
	}
	return moved, nil
}

// letter is the next letter of a rank, nil if there is none now.
func (o *office) letter(in *pipe.Reader, rank int) ([]byte, error) {
	letter, err := in.Next()
	if err != nil {
		return nil, &boxError{rank, err}
	}
	if letter != nil {
		o.world.RaceAcquire()
	}
	return letter, nil
}

// get takes what has come of a parcel.
func (o *office) get(p *parcel) (moved bool, err error) {
	in, err := o.reader(p.rank)
	if in == nil {
		return false, err
	}
	for !p.finished() {
		letter, err := o.letter(in, p.rank)
		if letter == nil {
			return moved, err
		}
		if err := p.unpack(o.world, letter); err != nil {
			return moved, err
		}
		o.world.RaceRelease()
		if in.Free() {
			o.world.Ring(p.rank)
		}
		moved = true
	}
	return moved, nil
}

// tell tells the owner of a tray where a pipe is: in which region, and from where on.
func (t *tray) tell(place verbs.RemoteRegion, at int) {
	t.address.Store(place.Address)
	t.length.Store(place.Length)
	t.rkey.Store(uint64(place.RKey))
	t.told.Store(uint64(at) + 1)
}

// look tells where the pipe is, if that was told.
func (t *tray) look() (place verbs.RemoteRegion, at uint64, some bool) {
	told := t.told.Load()
	if told == 0 {
		return place, 0, false
	}
	return verbs.RemoteRegion{Address: t.address.Load(), Length: t.length.Load(), RKey: uint32(t.rkey.Load())}, told - 1, true
}

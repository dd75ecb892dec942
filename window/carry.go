package window

import (
	"errors"
	"fmt"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/prefetch"
)

// carrying is a packet of another rank that is being carried out on this rank's part. It
// checks every operation: one that is refused leaves the others as they are.
type carrying struct {
	server *server
	reader aggregate.Reader
	// run is at hand, of which the operations before next are done, and done bytes of
	// that, if it is an accumulate.
	run        aggregate.Run
	next, done int
	// answer is as long as all of it, the first filled bytes of it are made.
	answer []byte
	filled int
	// rides tells that it rides with a lease.
	rides bool
	lease lease
	// refused is the first refusal of refusals.
	refused  error
	refusals int
}

// carry begins to carry out a packet, whose answer is made in memory that other packets use
// too. The answer goes in one message, which bounds it.
func (s *server) carry(from *job.Link, packet []byte) (carrying, error) {
	n, err := aggregate.Check(packet)
	if err == nil && n > from.MaxPayload() {
		err = fmt.Errorf("%s asked for, at most %d are allowed", errtext.Count(n, "byte"), from.MaxPayload())
	}
	if err != nil {
		return carrying{}, err
	}
	// What it carries, and what it asks for.
	s.core.world.Copied(len(packet) + n)
	return carrying{server: s, reader: aggregate.NewReader(packet), answer: s.answer(n)}, nil
}

// packet carries out what a packet asks, and answers it.
func (s *server) packet(from *job.Link, payload []byte) error {
	c, err := s.carry(from, payload)
	if err != nil {
		return err
	}
	if !c.goOn() {
		s.later(from, &c)
		return nil
	}
	return c.end(from)
}

// end answers, and tells what was refused.
func (c *carrying) end(from *job.Link) error {
	err := c.refused
	if c.refusals > 1 {
		err = fmt.Errorf("%w (and %s of its packet)", err, errtext.Count(c.refusals-1, "other"))
	}
	if !c.rides && len(c.answer) == 0 {
		return err
	}
	if err != nil {
		from.Complain(c.server.core.number, err)
	}
	if c.rides {
		c.server.grant(from, &c.lease, c.answer)
	} else {
		from.Answer(c.answer)
	}
	return nil
}

// goOn carries out what is left, up to a stripe that another rank has, and tells whether
// all is done.
func (c *carrying) goOn() bool {
	for {
		if c.next == c.run.Count {
			var some bool
			if c.run, some = c.reader.Next(); !some {
				return true
			}
			c.next = 0
			if c.server.core.hints.ReadOnly && writes(&c.run) {
				c.refuseRun()
			}
			continue
		}
		run := &c.run
		switch {
		case run.Kind == aggregate.Put && run.Size == 8:
			c.putWords()
			continue
		case run.Kind == aggregate.Get && run.Size == 8:
			c.getWords()
			continue
		case run.Kind == aggregate.Accumulate || run.Kind == aggregate.Fetch:
			if run.Size == run.Element.Size() && c.combineEach() {
				continue
			}
		}
		c.fetchAhead()
		done, err := c.one()
		if err != nil {
			c.refuse(err)
		}
		if !done {
			return false
		}
		c.next++
		c.done = 0
	}
}

// writes reports whether the operations of a run change the window.
func writes(run *aggregate.Run) bool {
	return run.Kind != aggregate.Get && (run.Kind != aggregate.Fetch || run.Op != reduce.NoOp)
}

// refuseRun refuses the operations of a run that writes.
func (c *carrying) refuseRun() {
	for ; c.next < c.run.Count; c.next++ {
		c.place(c.run.Answer())
		c.refuse(ErrReadOnly)
	}
}

// refuse notes that the operation at hand is not carried out. What it was to read is zero.
func (c *carrying) refuse(err error) {
	if c.refusals++; c.refusals > 1 {
		return
	}
	offset, _ := c.run.Operation(c.next)
	c.refused = fmt.Errorf("%s of %s at offset %d: %w", operationNames[c.run.Kind], errtext.Count(c.run.Size, "byte"), offset, err)
}

var operationNames = map[aggregate.Kind]string{
	aggregate.Put: "put", aggregate.Get: "get", aggregate.Accumulate: "accumulate", aggregate.Fetch: "fetch",
	aggregate.Swap: "compare-and-swap", aggregate.Notify: "notification",
}

// putWords carries out the puts of a run of words.
func (c *carrying) putWords() {
	data := c.server.core.own.data
	for ; c.next < c.run.Count; c.next++ {
		offset, word := c.run.Operation(c.next)
		if offset > uint64(len(data)) || uint64(len(data))-offset < 8 {
			c.refuse(outside(8, offset, len(data)))
			continue
		}
		copy(data[offset:offset+8], word)
	}
}

// place is the place of the next n bytes of the answer, which are zero.
func (c *carrying) place(n int) []byte {
	into := c.answer[c.filled:][:n]
	clear(into)
	c.filled += n
	return into
}

// getWords carries out the gets of a run of words.
func (c *carrying) getWords() {
	data := c.server.core.own.data
	for ; c.next < c.run.Count; c.next++ {
		c.fetchAhead()
		offset, _ := c.run.Operation(c.next)
		into := c.place(8)
		if offset > uint64(len(data)) || uint64(len(data))-offset < 8 {
			c.refuse(outside(8, offset, len(data)))
			continue
		}
		copy(into, data[offset:offset+8])
	}
}

// ahead is how many operations the memory of one is fetched ahead of it: one takes as long
// as a small part of a fetch.
const ahead = 32

// fetchAhead begins to fetch what a later operation needs.
func (c *carrying) fetchAhead() {
	if !prefetch.Works || c.next+ahead >= c.run.Count {
		return
	}
	data := c.server.core.own.data
	if offset, _ := c.run.Operation(c.next + ahead); offset < uint64(len(data)) {
		prefetch.Write(at(data[offset:]))
	}
}

// one carries out the operation at hand. It is not done if another rank has a stripe that
// it needs.
func (c *carrying) one() (done bool, err error) {
	s, run := c.server, &c.run
	offset, operand := run.Operation(c.next)
	if run.Kind == aggregate.Notify {
		if offset >= uint64(s.core.hints.Slots) {
			return true, fmt.Errorf("notification slot %d, there are %d", offset, s.core.hints.Slots)
		}
		s.core.world.BeforeTelling()
		s.core.own.control.slot(int(offset)).Add(1)
		if host := s.core.host; host != s.core {
			host.world.Ring(host.rank)
		}
		return true, nil
	}
	into := c.answer[c.filled:][:run.Answer()]
	if c.done == 0 {
		clear(into)
	}
	memory, err := s.part(offset, uint64(run.Size))
	if err == nil && run.Kind != aggregate.Put && run.Kind != aggregate.Get {
		err = aligned(memory, offset, run.Element)
	}
	if err != nil {
		c.filled += len(into)
		return true, err
	}
	done = true
	switch run.Kind {
	case aggregate.Put:
		copy(memory, operand)
	case aggregate.Get:
		copy(into, memory)
	case aggregate.Swap:
		size := run.Size
		done = s.viewFor(run.Element).swapServed(memory, operand[:size], operand[size:], into, offset)
	default:
		done = c.accumulate(memory, operand, into, offset)
	}
	if done {
		c.filled += len(into)
	}
	return done, nil
}

// accumulate carries out what is left of the accumulate or fetch at hand.
func (c *carrying) accumulate(memory, operand, into []byte, offset uint64) bool {
	run := &c.run
	from := c.done
	memory, operand = memory[from:], operand[min(from, len(operand)):]
	if len(into) > 0 {
		into = into[from:run.Size]
	}
	if len(memory) == 0 {
		return true
	}
	c.done += c.server.viewFor(run.Element).apply(run.Op, memory, operand, into, offset+uint64(from))
	return c.done == run.Size
}

// aligned says why elements of a kind cannot be where a message says.
func aligned(memory []byte, offset uint64, kind reduce.Kind) error {
	if offset%uint64(kind.Size()) != 0 || len(memory) > 0 && alignmentOf(memory) < min(kind.Size(), 8) {
		return fmt.Errorf("%w: elements of %s at offset %d", ErrAlignment, errtext.Count(kind.Size(), "byte"), offset)
	}
	return nil
}

// errOutside is a request outside of a window.
var errOutside = errors.New("outside of the window")

func outside(n, offset uint64, size int) error {
	return fmt.Errorf("%s at offset %d: %w, which has %d", errtext.Count(n, "byte"), offset, errOutside, size)
}

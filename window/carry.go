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

// carrying is the state of applying a packet of another rank to this rank's part. It checks every operation. One that
// is rejected leaves the others as they are.
type carrying struct {
	server *server
	reader aggregate.Reader
	// run is the current run. Its operations before next are done, and done bytes of the next one, if that is an
	// accumulate.
	run        aggregate.Run
	next, done int
	// answer is as long as the whole response, whose first filled bytes are made.
	answer []byte
	filled int
	// rides is set if the packet came with a lock request or a Complete.
	rides bool
	lease lease
	// refused is the error of the first of refusals rejected operations.
	refused  error
	refusals int
}

// carry begins to apply a packet. Its response is made in memory that other packets use, too. The response goes in one
// message, whose size is its limit.
func (s *server) carry(from *job.Link, packet []byte) (carrying, error) {
	n, err := aggregate.Check(packet)
	if err == nil && n > from.MaxPayload() {
		err = fmt.Errorf("%s asked for, at most %d are allowed", errtext.Count(n, "byte"), from.MaxPayload())
	}
	if err != nil {
		return carrying{}, err
	}
	// The bytes of the packet and of its response are copied.
	s.core.world.Copied(len(packet) + n)
	return carrying{server: s, reader: aggregate.NewReader(packet), answer: s.answer(n)}, nil
}

// packet applies a packet and responds to it.
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

// end sends the response, and the error of rejected operations.
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

// goOn applies the operations that remain, until one needs a stripe that another rank has. It reports whether all are
// done.
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

// refuseRun rejects the operations of a run that writes.
func (c *carrying) refuseRun() {
	for ; c.next < c.run.Count; c.next++ {
		c.place(c.run.Response())
		c.refuse(ErrReadOnly)
	}
}

// refuse records that the current operation is rejected. Its result is zero.
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

// putWords applies the puts of a run of words.
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

// place returns the next n bytes of the response, which are zero.
func (c *carrying) place(n int) []byte {
	into := c.answer[c.filled:][:n]
	clear(into)
	c.filled += n
	return into
}

// getWords applies the gets of a run of words.
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

// ahead is the number of operations by which prefetching is ahead of applying. One operation takes a small part of the
// time of a memory access.
const ahead = 32

// fetchAhead prefetches the memory of a later operation.
func (c *carrying) fetchAhead() {
	if !prefetch.Works || c.next+ahead >= c.run.Count {
		return
	}
	data := c.server.core.own.data
	if offset, _ := c.run.Operation(c.next + ahead); offset < uint64(len(data)) {
		prefetch.Write(at(data[offset:]))
	}
}

// one applies the current operation. done is false if another rank has a stripe that it needs.
func (c *carrying) one() (done bool, err error) {
	s, run := c.server, &c.run
	offset, operand := run.Operation(c.next)
	if run.Kind == aggregate.Notify {
		if offset >= uint64(s.core.hints.Slots) {
			return true, fmt.Errorf("notification slot %d, there are %d", offset, s.core.hints.Slots)
		}
		s.core.world.RaceRelease()
		s.core.own.control.slot(int(offset)).Add(1)
		if host := s.core.host; host != s.core {
			host.world.Ring(host.rank)
		}
		return true, nil
	}
	into := c.answer[c.filled:][:run.Response()]
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

// accumulate applies what remains of the current accumulate or fetch.
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

// aligned returns the error of elements of a kind that a message wants at an offset where they cannot be.
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

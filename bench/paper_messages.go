package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/channel"
	"github.com/onesided/rma/verbs/sim"
)

// What part B's messages (paper_frequent_messages.go, paper_frequent_collectives.go) go by, in the paper's
// order of things (3.1): eager messages, whose receiver copies them. Their sender copies them as well, or asks
// package regcache of each buffer, and what is registered the card takes from where it is, behind the head
// of the message, by a gather list. The paper's fast path is package verbs/channel with its rings, the other the
// same without: both times the receiver finds a message by itself, in memory or by a completion.

const (
	// eagerBytes is the longest message that is sent without asking the receiver (B, 2); longer ones go in
	// pieces of that length.
	eagerBytes = 9 << 10
	// messageNodes are the nodes of the paper's cluster, and its card is told of whole pages (5.1.1).
	messageNodes = 4
	cardPage     = 4096
)

// A mode is how messages go: by rings if it is fast, and from buffers that are registered as speculation says.
type mode struct {
	fast        bool
	speculation regcache.Speculation
}

// A messageRank is one of them.
type messageRank struct {
	job    *messageJob
	rank   int
	device *sim.Device
	poller *channel.Poller
	// ends are connections to ranks of other nodes, came what they have brought.
	ends map[int]*channel.End
	came map[*channel.End][]channel.Arrival
	into [4]channel.Arrival
	// beside is what ranks of the same node have left for this one, by their rank.
	beside map[int]*shelf
	// memory has the buffers, whose addresses policy is told as offsets, so that figures are the same
	// wherever the memory is. It is nil while all are copied. lent are those that the card may read.
	memory []byte
	policy *regcache.Policy[verbs.MemoryRegion]
	lent   []*regcache.Entry[verbs.MemoryRegion]
}

// open connects a rank to its parent and its children of other nodes.
func (r *messageRank) open() (err error) {
	options := channel.Options{
		Ring:    channel.Config{Buffers: 32, BufferBytes: eagerBytes + 64, MaxMessage: eagerBytes},
		Letters: channelLetters,
	}
	if !r.job.mode.fast {
		options.Budget, options.SignalAll = -1, true
	}
	if r.poller, err = channel.NewPoller(r.device, options); err != nil {
		return err
	}
	r.policy = r.newPolicy(r.job.mode.speculation)
	if parent := r.parent(); parent >= 0 && !r.neighbors(parent) {
		if r.ends[parent], err = r.poller.Connect(r.job.ranks[parent].device.Address(), []byte{byte(r.rank)}); err != nil {
			return err
		}
	}
	for child := range r.children {
		if r.neighbors(child) {
			continue
		}
		var requests [1]verbs.ConnectionRequest
		for r.device.PollConnections(requests[:]) == 0 {
			if err := r.sleep(); err != nil {
				return err
			}
		}
		if r.ends[int(requests[0].Hello()[0])], err = r.poller.Accept(requests[0]); err != nil {
			return err
		}
	}
	return nil
}

// newPolicy keeps all that it has registered.
func (r *messageRank) newPolicy(s regcache.Speculation) *regcache.Policy[verbs.MemoryRegion] {
	costs := regcache.Costs{Costs: r.device.Costs(), PageSize: cardPage}
	return regcache.NewPolicy[verbs.MemoryRegion](costs.Extra, s, regcache.Limits{Bytes: 1 << 30, Regions: 1 << 20})
}

// sleep ends when the card has brought something, or a rank of the node. It is an error if a rank has ended
// with one.
func (r *messageRank) sleep() error {
	c := r.device.Channel()
	c.Sleep(c.Prepare(), time.Millisecond)
	c.Finish()
	return r.job.failed
}

// buffer is a piece of the memory.
func (r *messageRank) buffer(from, bytes int) []byte { return r.memory[from:][:bytes:bytes] }

// send sends a buffer of the memory.
func (r *messageRank) send(to, from, bytes int) error {
	payload := r.buffer(from, bytes)
	if r.policy == nil || r.neighbors(to) || bytes > eagerBytes {
		return r.sendOnce(to, payload)
	}
	entry, verdict := r.policy.Use(uint64(from), bytes)
	if verdict == regcache.Register {
		var err error
		if entry, err = r.register(from, bytes); err != nil {
			return err
		}
	}
	if entry == nil {
		return r.sendOnce(to, payload)
	}
	r.lent = append(r.lent, entry)
	return r.post(to, nil, verbs.Segment{Memory: payload, LKey: entry.Region.LKey()})
}

// sendOnce sends memory that is not going to be used again, or not by this way.
func (r *messageRank) sendOnce(to int, payload []byte) error {
	switch {
	case r.neighbors(to):
		r.leave(to, payload)
		return nil
	case len(payload) > eagerBytes:
		return r.sendLong(to, payload)
	}
	return r.post(to, payload, verbs.Segment{})
}

// register has the card know the pages of a buffer, with what it knows of others of them.
func (r *messageRank) register(from, bytes int) (*regcache.Entry[verbs.MemoryRegion], error) {
	last := min((from+bytes+cardPage-1)&^(cardPage-1), len(r.memory))
	first, end := r.policy.Cover(uint64(from&^(cardPage-1)), uint64(last))
	region, err := r.device.RegisterMemory(r.memory[first:end], verbs.LocalWrite)
	if err != nil {
		return nil, err
	}
	entry := r.policy.Add(first, end, region)
	for {
		old, some := r.policy.Ended()
		if !some {
			return entry, nil
		}
		if err := old.Deregister(); err != nil {
			return nil, err
		}
	}
}

// post sends head and, behind it, what the card knows, when there is room.
func (r *messageRank) post(to int, head []byte, body verbs.Segment) error {
	for waits := false; ; waits = true {
		err := r.ends[to].SendFrom(head, body)
		if !errors.Is(err, verbs.ErrQueueFull) {
			return err
		}
		n, err := r.poll()
		if waits && n == 0 && err == nil {
			err = r.sleep()
		}
		if err != nil {
			return err
		}
	}
}

// settle ends when the card reads no memory of the program's any more.
func (r *messageRank) settle() error {
	for r.lends() {
		n, err := r.poll()
		if n == 0 && err == nil && r.lends() {
			err = r.sleep()
		}
		if err != nil {
			return err
		}
	}
	for _, entry := range r.lent {
		r.policy.Release(entry)
	}
	r.lent = r.lent[:0]
	return nil
}

// lends tells whether the card may read memory of the program's.
func (r *messageRank) lends() bool {
	for _, e := range r.ends {
		if e.Lent() {
			return true
		}
	}
	return false
}

// poll takes what has come, and tells how much that was.
func (r *messageRank) poll() (n int, err error) {
	n = r.poller.Poll(r.into[:])
	for _, a := range r.into[:n] {
		if a.Err != nil {
			return n, a.Err
		}
		r.came[a.End] = append(r.came[a.End], a)
	}
	return n, nil
}

// receive takes a message of a rank.
func (r *messageRank) receive(from int, into []byte) error {
	switch {
	case r.neighbors(from):
		return r.pick(from, into)
	case len(into) > eagerBytes:
		return r.receiveLong(from, into)
	}
	return r.take(from, into)
}

func (r *messageRank) take(from int, into []byte) error {
	e := r.ends[from]
	for len(r.came[e]) == 0 {
		n, err := r.poll()
		if n == 0 && err == nil {
			err = r.sleep()
		}
		if err != nil {
			return err
		}
	}
	a := r.came[e][0]
	r.came[e] = r.came[e][:copy(r.came[e], r.came[e][1:])]
	if len(a.Payload) != len(into) {
		return fmt.Errorf("bench: a message of %d bytes, expected are %d", len(a.Payload), len(into))
	}
	r.device.Copy(into, a.Payload)
	e.Release(&a)
	return nil
}

// askBytes is how long a question is, and its answer.
const askBytes = 8

// sendLong asks for room and sends a message in pieces, which are copied in all modes: nothing of this is
// of the mechanism.
func (r *messageRank) sendLong(to int, payload []byte) error {
	var ask [askBytes]byte
	if err := r.sendOnce(to, ask[:]); err != nil {
		return err
	}
	if err := r.take(to, ask[:]); err != nil {
		return err
	}
	for len(payload) > 0 {
		n := min(len(payload), eagerBytes)
		if err := r.sendOnce(to, payload[:n]); err != nil {
			return err
		}
		payload = payload[n:]
	}
	return nil
}

func (r *messageRank) receiveLong(from int, into []byte) error {
	var ask [askBytes]byte
	if err := r.take(from, ask[:]); err != nil {
		return err
	}
	if err := r.sendOnce(from, ask[:]); err != nil {
		return err
	}
	for len(into) > 0 {
		n := min(len(into), eagerBytes)
		if err := r.take(from, into[:n]); err != nil {
			return err
		}
		into = into[n:]
	}
	return nil
}

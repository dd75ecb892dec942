package paper

import (
	"errors"
	"fmt"
	"time"

	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/channel"
	"github.com/onesided/rma/verbs/sim"
)

// The messages of part B (paper_frequent_messages.go, paper_frequent_collectives.go) are eager messages (3.1), which
// the receiver copies. The sender copies them as well, or asks package regcache for each buffer. The card reads
// registered memory in place, after the message's header, by a gather list. The paper's fast path is package
// verbs/channel with its rings; the other path is the same without rings. On both the receiver finds a message by
// itself, in memory or by a completion.

const (
	// eagerBytes is the length of the longest message that is sent without a request to the receiver (B, 2). Longer
	// ones are sent in pieces of that length.
	eagerBytes = 9 << 10
	// messageNodes is the number of nodes of the paper's cluster. Its card registers whole pages (5.1.1).
	messageNodes = 4
	cardPage     = 4096
)

// A mode says how messages go: by rings if fast is set, and from buffers registered as speculation says.
type mode struct {
	fast        bool
	speculation regcache.Speculation
}

// A messageRank is a rank of a messageJob.
type messageRank struct {
	job    *messageJob
	rank   int
	device *sim.Device
	poller *channel.Poller
	// ends are connections to ranks of other nodes. came has the messages that they have received.
	ends map[int]*channel.End
	came map[*channel.End][]channel.Arrival
	into [4]channel.Arrival
	// fromNode has what ranks of the same node have stored for this one, by their rank.
	fromNode map[int]*sharedMessage
	// memory has the buffers. policy is given their offsets as addresses, so that figures do not depend on the place
	// of memory. policy is nil while all are copied. lent are buffers that the card may read.
	memory []byte
	policy *regcache.Policy[verbs.MemoryRegion]
	lent   []*regcache.Entry[verbs.MemoryRegion]
}

// open connects a rank to its parent and its children on other nodes.
func (r *messageRank) open() (err error) {
	options := channel.Options{
		Ring:          channel.Config{Buffers: 32, BufferBytes: eagerBytes + 64, MaxMessage: eagerBytes},
		EagerMessages: eagerMessages,
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

// newPolicy returns a policy that keeps everything registered.
func (r *messageRank) newPolicy(s regcache.Speculation) *regcache.Policy[verbs.MemoryRegion] {
	costs := regcache.Costs{Costs: r.device.Costs(), PageSize: cardPage}
	return regcache.NewPolicy[verbs.MemoryRegion](costs.Extra, s, regcache.Limits{Bytes: 1 << 30, Regions: 1 << 20})
}

// sleep returns when the card or a rank of the node has brought something. It returns an error if a rank has ended
// with one.
func (r *messageRank) sleep() error {
	c := r.device.Channel()
	c.Sleep(c.Prepare(), time.Millisecond)
	c.Finish()
	return r.job.failed
}

// buffer returns a piece of the memory.
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

// sendOnce sends memory that will not be used again, or not in this way.
func (r *messageRank) sendOnce(to int, payload []byte) error {
	switch {
	case r.neighbors(to):
		r.store(to, payload)
		return nil
	case len(payload) > eagerBytes:
		return r.sendLong(to, payload)
	}
	return r.post(to, payload, verbs.Segment{})
}

// register registers the pages of a buffer, together with its pages that are registered already.
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

// post sends a header and, after it, registered memory, when there is room.
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

// settle returns when the card no longer reads memory of the program.
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

// lends reports whether the card may read memory of the program.
func (r *messageRank) lends() bool {
	for _, e := range r.ends {
		if e.Lent() {
			return true
		}
	}
	return false
}

// poll takes the received messages, and returns their number.
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
		return r.load(from, into)
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

// requestBytes is the length of a request, and of its response.
const requestBytes = 8

// sendLong requests room and sends a message in pieces, which are copied in all modes: the mechanism does not affect
// it.
func (r *messageRank) sendLong(to int, payload []byte) error {
	var request [requestBytes]byte
	if err := r.sendOnce(to, request[:]); err != nil {
		return err
	}
	if err := r.take(to, request[:]); err != nil {
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
	var request [requestBytes]byte
	if err := r.take(from, request[:]); err != nil {
		return err
	}
	if err := r.sendOnce(from, request[:]); err != nil {
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

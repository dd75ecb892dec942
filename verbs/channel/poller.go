package channel

import (
	"errors"
	"fmt"
	"time"

	"github.com/onesided/rma/internal/spin"
	"github.com/onesided/rma/verbs"
)

// A Poller has all channels of a rank over one device: a completion queue, a polling set, and an [End] for each peer. A
// Poller and its Ends are for one goroutine at a time.
type Poller struct {
	device     verbs.Device
	attributes verbs.Attributes
	options    Options
	queue      verbs.CompletionQueue
	rings      verbs.RingPoller
	// mapper is nil if there are no pipes.
	mapper verbs.Mapper
	set    *Set
	// ends are indexed by the ID of their channels, nil where one was closed. pairs are by the number of their queue
	// pairs.
	ends  []*End
	pairs map[uint32]*End
	// withArrived are the Ends with eager messages that were not taken, owing those that may have to send a stamp.
	withArrived, owing []*End
	due                bool
	// first is the index in the set of the ring to poll first. found counts the polls since the completion queue was
	// polled.
	first, found int
	// piped: the last message came by a pipe, so that more are likely to and the completion queue may wait. stuck: a
	// message in a ring or pipe cannot be taken.
	piped, stuck bool
	// quiet: only the pipes have to be polled. idle: the last poll found nothing.
	quiet, idle bool
	// lost are the Ends that end once everything that has arrived is taken. ended have ended.
	lost, ended []*End
	// retired are pipes whose memory must not be reused yet.
	retired []retiredPipe
	// full: the last poll had no room for more.
	full bool
	// completions is the buffer of polls.
	completions [16]verbs.Completion
}

// Options are the options of a Poller. The zero value of each field stands for the default that it names.
type Options struct {
	// Ring is the shape of the rings in which this side receives. It also bounds the length of a peer's ring that this
	// side writes to. The default is DefaultConfig.
	Ring Config
	// Budget is the time that polling all rings may take, DefaultBudget by default. If it is negative there are no
	// rings, and all messages are eager messages.
	Budget time.Duration
	// EagerMessages is the number of eager messages that a connection may have outstanding in each direction, 2 to 128,
	// 8 by default. MaxMessage is the length of the longest message, the same on all ranks, by default Ring.MaxMessage.
	EagerMessages, MaxMessage int
	// MaxSends is that of the queue pairs, at least 8, 128 by default.
	MaxSends int
	// WithoutPipes makes short messages use the queue pair even where the peer's memory could be mapped.
	WithoutPipes bool
	// SignalAll signals every request, to measure the cost of that.
	SignalAll bool
	// Completions is the capacity of the completion queue, 1<<14 by default. Each connection needs MaxSends +
	// EagerMessages.
	Completions int
}

const (
	maxEagerMessages = 128
	fewestSends      = 8
	// mostFound is the number of consecutive polls that found something in rings, or waited for something in a pipe,
	// after which the completion queue is polled too.
	mostFound = 32
)

// NewPoller returns a Poller over a device.
func NewPoller(device verbs.Device, options Options) (*Poller, error) {
	if options.Ring == (Config{}) {
		options.Ring = DefaultConfig()
	}
	if err := options.Ring.Check(); err != nil {
		return nil, err
	}
	set := func(option *int, usual int) {
		if *option == 0 {
			*option = usual
		}
	}
	set(&options.EagerMessages, 8)
	set(&options.MaxMessage, options.Ring.MaxMessage)
	set(&options.MaxSends, 128)
	set(&options.Completions, 1<<14)
	if options.Budget == 0 {
		options.Budget = DefaultBudget
	}
	attributes := device.Attributes()
	if options.EagerMessages < 2 || options.EagerMessages > maxEagerMessages || options.MaxMessage < 1 || options.MaxMessage > attributes.MaxMessage-eagerHead ||
		options.MaxSends < fewestSends || options.MaxSends > 1<<14 {
		return nil, fmt.Errorf("channel: %d eager messages, messages of %d bytes, %d sends; allowed are 2 to %d, 1 to %d, %d to %d",
			options.EagerMessages, options.MaxMessage, options.MaxSends, maxEagerMessages, attributes.MaxMessage-eagerHead, fewestSends, 1<<14)
	}
	queue, err := device.CreateCompletionQueue(options.Completions)
	if err != nil {
		return nil, err
	}
	perRing := device.Costs().PollRing
	if perRing == 0 && !attributes.Virtual {
		perRing = pollTime()
	}
	p := &Poller{
		device: device, attributes: attributes, options: options, queue: queue, set: NewSet(options.Budget, perRing),
		pairs: make(map[uint32]*End),
	}
	p.rings, _ = device.(verbs.RingPoller)
	if !options.WithoutPipes && !attributes.Virtual {
		p.mapper, _ = device.(verbs.Mapper)
	}
	return p, nil
}

// An Arrival is a received message, or the end of a connection.
type Arrival struct {
	End *End
	// The payload is valid, and must not be written to, until Release, or until the End is closed.
	Message
	// Err is why the connection has ended. There is then no payload and nothing to release.
	Err error

	slot int
}

// The slots of messages that are not eager messages.
const (
	byRing = -1 - iota
	byPipe
)

// Poll stores at most len(into) received messages in into and returns their number. The messages of each connection are
// in order. It polls the rings and pipes, and the completion queue if it finds nothing there. While messages arrive by
// pipes, and the rank does not prepare to sleep, it polls the completion queue only after 32 polls without a message.
func (p *Poller) Poll(into []Arrival) (n int) {
	if p.found++; p.quiet && p.found < mostFound && len(into) > 0 {
		if n = p.pollRings(into); p.quiet {
			if n == 0 && p.idle {
				spin.Relax()
			}
			p.idle = n == 0
			return n
		}
	}
	n += p.pollAll(into[n:])
	p.quiet = p.piped && !p.due && len(p.withArrived)+len(p.lost)+len(p.owing)+len(p.ended) == 0
	return n
}

// pollAll is Poll without shortcuts.
func (p *Poller) pollAll(into []Arrival) (n int) {
	if p.full && len(p.withArrived) > 0 {
		// There may have been no room for eager messages.
		n = p.takeEager(into)
	}
	if p.set.Len() > 0 {
		n += p.pollRings(into[n:])
	}
	if p.found >= mostFound || n == 0 && (!p.piped || p.stuck || len(into) == 0) {
		p.found, p.stuck = 0, false
		p.pollQueue()
	}
	if len(p.withArrived) > 0 {
		n += p.takeEager(into[n:])
	}
	if len(p.lost) > 0 {
		n += p.drainLost(into[n:])
	}
	if p.due {
		p.review()
	}
	if len(p.owing) > 0 {
		p.sendOwed()
	}
	p.full = n == len(into)
	for n < len(into) && len(p.ended) > 0 {
		e := p.ended[0]
		p.ended = p.ended[:copy(p.ended, p.ended[1:])]
		into[n] = Arrival{End: e, Err: e.err}
		n++
	}
	return n
}

func (p *Poller) pollRings(into []Arrival) (n int) {
	if p.rings != nil {
		p.rings.PollRings(p.set.Len())
	}
	if p.set.Len() == 1 {
		if p.set.Next(0) == 0 {
			n = p.takeAt(0, into)
		}
		return n
	}
	// Each ring is the first in turn, so that one that is always full does not starve the others.
	if p.first++; p.first >= p.set.Len() {
		p.first = 0
	}
	for i := p.set.Next(p.first); i >= 0; i = p.set.Next(i + 1) {
		n += p.takeAt(i, into[n:])
	}
	if p.first == 0 {
		return n
	}
	for i := p.set.Next(0); i >= 0 && i < p.first; i = p.set.Next(i + 1) {
		n += p.takeAt(i, into[n:])
	}
	return n
}

// takeAt takes the messages of the member of the set at an index.
func (p *Poller) takeAt(i int, into []Arrival) int {
	n := p.ends[p.set.At(i).ID].takeRing(into)
	if n == 0 {
		p.stuck, p.quiet = true, false
	}
	return n
}

// pollQueue polls the completion queue.
func (p *Poller) pollQueue() {
	n := p.queue.Poll(p.completions[:])
	for i := range n {
		c := &p.completions[i]
		if e := p.pairs[c.QueuePair]; e != nil && e.err == nil {
			e.completed(c)
		}
	}
}

// takeEager takes the eager messages that have arrived, and what has to be taken before them.
func (p *Poller) takeEager(into []Arrival) (n int) {
	left := 0
	for _, e := range p.withArrived {
		n += e.takeEager(into[n:])
		if len(e.arrived) > 0 && e.err == nil {
			p.withArrived[left] = e
			left++
		}
	}
	p.withArrived = p.withArrived[:left]
	return n
}

// count counts a message of an End.
func (p *Poller) count(e *End) {
	if p.set.CountMessage(e.channel) {
		p.due, p.quiet = true, false
	}
}

// review updates the set.
func (p *Poller) review() {
	p.due = false
	join, leave := p.set.Review()
	for _, c := range join {
		if e := p.ends[c.ID]; e.ring() {
			p.set.Add(c)
			p.owe(e)
		}
	}
	p.dismissed(leave)
}

func (p *Poller) dismissed(leave []*Channel) {
	for _, c := range leave {
		p.owe(p.ends[c.ID])
	}
}

// PrepareSleep makes all peers send eager messages from now on. It is for a rank that is about to sleep on the device's
// channel, which a write does not ring. Before each sleep the rank calls PrepareSleep, and polls until Poll finds
// nothing.
func (p *Poller) PrepareSleep() {
	p.piped, p.quiet = false, false
	p.dismissed(p.set.LeaveAll())
	p.sendOwed()
}

// owe adds an End to owing.
func (p *Poller) owe(e *End) {
	if !e.owes {
		e.owes, p.quiet = true, false
		p.owing = append(p.owing, e)
	}
}

// sendOwed makes all Ends in owing send what their peers have to know.
func (p *Poller) sendOwed() {
	left := 0
	for _, e := range p.owing {
		if e.err != nil || e.lost != nil || e.sendOwed() {
			e.owes = false
			continue
		}
		p.owing[left] = e
		left++
	}
	p.owing = p.owing[:left]
}

// Polled returns the number of rings that are polled.
func (p *Poller) Polled() int { return p.set.Len() }

// Close closes all Ends. The memory of pipes into which peers may still store is freed with the device.
func (p *Poller) Close() error {
	var err error
	for _, e := range p.ends {
		if e != nil {
			err = errors.Join(err, e.Close())
		}
	}
	err = errors.Join(err, p.freeRetired())
	for _, d := range p.retired {
		err = errors.Join(err, d.region.Deregister())
	}
	p.retired = nil
	return errors.Join(err, p.queue.Close())
}

package traced

import (
	"sync"
	"time"

	"github.com/onesided/rma/verbs"
)

// Options are the options of a trace.
type Options struct {
	// Records is the number of completed requests, of calls, and of spans of the program that are kept, the latest
	// ones. Each takes some 100 bytes. Zero or less means DefaultRecords.
	Records int
}

// DefaultRecords is the default of Options.Records.
const DefaultRecords = 1 << 16

// device wraps another device.
type device struct {
	verbs.Device
	verbs.Charger
	verbs.RingPoller
	verbs.Reserver
	trace   *Trace
	channel channel
	// server and meter are the inner device, nil if it does not implement them.
	server verbs.Server
	meter  verbs.Meter

	mu sync.RWMutex
	// pairs are the open queue pairs, by number.
	pairs map[uint32]*queuePair
}

// New returns a device that does what inner does, and its trace. The caller must not use inner, nor anything that inner
// has made.
func New(inner verbs.Device, options Options) (verbs.Device, *Trace) {
	if options.Records <= 0 {
		options.Records = DefaultRecords
	}
	d := &device{Device: inner, Charger: verbs.ChargerOf(inner), RingPoller: verbs.RingPollerOf(inner), Reserver: verbs.ReserverOf(inner), pairs: make(map[uint32]*queuePair)}
	d.channel = channel{inner.Channel(), d}
	d.server, _ = inner.(verbs.Server)
	d.meter, _ = inner.(verbs.Meter)
	d.trace = &Trace{device: d}
	for i := range d.trace.rings {
		d.trace.rings[i].records = make([]record, options.Records)
	}
	if !inner.Attributes().Virtual {
		d.trace.began = time.Now().Round(0).Add(-inner.Now())
	}
	return d.able(), d.trace
}

// able returns the device with the inner device's optional interfaces that change how a program uses it. It always
// implements Meter, Charger, RingPoller and Reserver.
func (d *device) able() verbs.Device {
	mapper, maps := d.Device.(verbs.Mapper)
	watcher, watches := d.Device.(verbs.Watcher)
	server := d.server
	switch serves := server != nil; {
	case maps && watches && serves:
		return struct {
			*device
			verbs.Mapper
			verbs.Watcher
			verbs.Server
		}{d, mapper, watcher, server}
	case maps && watches:
		return struct {
			*device
			verbs.Mapper
			verbs.Watcher
		}{d, mapper, watcher}
	case maps && serves:
		return struct {
			*device
			verbs.Mapper
			verbs.Server
		}{d, mapper, server}
	case watches && serves:
		return struct {
			*device
			verbs.Watcher
			verbs.Server
		}{d, watcher, server}
	case maps:
		return struct {
			*device
			verbs.Mapper
		}{d, mapper}
	case watches:
		return struct {
			*device
			verbs.Watcher
		}{d, watcher}
	case serves:
		return struct {
			*device
			verbs.Server
		}{d, server}
	}
	return d
}

// Frames returns 0 if the inner device does not count.
func (d *device) Frames() uint64 {
	if d.meter == nil {
		return 0
	}
	return d.meter.Frames()
}

// Work is for virtual time only.
func (d *device) Work(ticket uint32, limit time.Duration) {
	if !d.Attributes().Virtual {
		return
	}
	from := d.Now()
	d.Charger.Work(ticket, limit)
	d.trace.add(record{kind: computed, from: from, until: d.Now()})
}

// activity returns the Activity of the inner device, or 0 if that is no verbs.Server.
func (d *device) activity() uint64 {
	if d.server == nil {
		return 0
	}
	return d.server.Activity()
}

// Channel returns the event channel of the rank.
func (d *device) Channel() verbs.CompletionChannel { return &d.channel }

// channel records sleeps.
type channel struct {
	verbs.CompletionChannel
	device *device
}

// Sleep sleeps on the inner channel.
func (c *channel) Sleep(ticket uint32, limit time.Duration) {
	from := c.device.Now()
	c.CompletionChannel.Sleep(ticket, limit)
	if until := c.device.Now(); until > from {
		c.device.trace.add(record{kind: slept, from: from, until: until, n: 1})
	}
}

// completionQueue records polled completions.
type completionQueue struct {
	verbs.CompletionQueue
	device *device
}

// CreateCompletionQueue makes a queue.
func (d *device) CreateCompletionQueue(capacity int) (verbs.CompletionQueue, error) {
	inner, err := d.Device.CreateCompletionQueue(capacity)
	if err != nil {
		return nil, err
	}
	return &completionQueue{inner, d}, nil
}

// Poll polls the inner queue.
func (q *completionQueue) Poll(into []verbs.Completion) int {
	d := q.device
	from, activity := d.Now(), d.activity()
	n := q.CompletionQueue.Poll(into)
	if n == 0 && d.activity() == activity {
		return 0
	}
	until := d.Now()
	for i := range into[:n] {
		d.completed(&into[i], until)
	}
	d.trace.add(record{kind: polled, from: from, until: until, n: n})
	return n
}

// completed records a completion that was polled at a time.
func (d *device) completed(c *verbs.Completion, at time.Duration) {
	d.mu.RLock()
	q := d.pairs[c.QueuePair]
	d.mu.RUnlock()
	switch {
	case q == nil:
		// The queue pair was closed meanwhile.
	case c.Opcode != verbs.OpReceive && c.Opcode != verbs.OpReceiveImmediate:
		q.completed(c, at)
	case c.Status != verbs.StatusFlushed:
		d.trace.add(record{kind: received, opcode: c.Opcode, status: c.Status, pair: q, from: at, until: at, n: int(c.Bytes), id: c.ID})
	}
}

// Connect makes a queue pair.
func (d *device) Connect(address string, hello []byte, config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	inner, err := d.Device.Connect(address, hello, d.inner(config))
	if err != nil {
		return nil, err
	}
	return d.adopt(inner, address), nil
}

// connectionRequest makes recorded queue pairs.
type connectionRequest struct {
	verbs.ConnectionRequest
	device *device
}

// PollConnections takes connection requests.
func (d *device) PollConnections(into []verbs.ConnectionRequest) int {
	n := d.Device.PollConnections(into)
	for i, inner := range into[:n] {
		into[i] = &connectionRequest{inner, d}
	}
	return n
}

// Accept makes the queue pair.
func (r *connectionRequest) Accept(config verbs.QueuePairConfig) (verbs.QueuePair, error) {
	inner, err := r.ConnectionRequest.Accept(r.device.inner(config))
	if err != nil {
		return nil, err
	}
	return r.device.adopt(inner, "a peer"), nil
}

// inner returns the configuration for the inner device, which accepts only its own queues.
func (d *device) inner(config verbs.QueuePairConfig) verbs.QueuePairConfig {
	for _, queue := range []*verbs.CompletionQueue{&config.SendQueue, &config.ReceiveQueue} {
		if q, ok := (*queue).(*completionQueue); ok && q.device == d {
			*queue = q.CompletionQueue
		}
	}
	return config
}

// Close closes the inner device. Outstanding requests stay outstanding in the trace.
func (d *device) Close() error {
	now := d.Now()
	err := d.Device.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	for number, q := range d.pairs {
		delete(d.pairs, number)
		q.abandon(now)
	}
	return err
}

package rails

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/internal/completion"
	"github.com/onesided/rma/verbs"
)

const (
	// depth is the default of MaxSends and MaxReceives, maxDepth their maximum.
	depth    = 128
	maxDepth = 1 << 20
)

// The ID of a rail's completion has the index of the queue pair in the upper half, and a kind and a number in the lower
// half.
const (
	partKind    = 0 << 30
	sentKind    = 2 << 30
	receiveKind = 3 << 30
	kindMask    = 3 << 30
	numberMask  = 1<<30 - 1
)

var _ verbs.Severer = (*queuePair)(nil)

// queuePair has a queue pair on each rail.
type queuePair struct {
	device *device
	pairs  []verbs.QueuePair
	// numbers are the numbers of pairs. place is the index in device.pairs.
	numbers         []uint32
	place           int
	sends, receives *completionQueue
	failed          atomic.Bool

	mu     sync.Mutex
	closed bool
	err    error
	// severed: the rails were severed, or are being severed.
	severed bool
	// flushing: a request has completed with an error.
	flushing bool

	// records are the requests that have not completed, a ring of count entries from at on. The first has the number
	// next - count. The first known of them are known to be done with rail 0. The last deferred.count have not been
	// posted. next is below 1 << 30.
	records []record
	at      int
	count   int
	known   int
	next    uint32
	// onOthers counts the outstanding parts on the rails after the first. backlog is the total length of the
	// outstanding requests that could be worth striping.
	onOthers int
	backlog  int
	deferred deferredRing

	// ready has the requests to post on each rail, segments their segments. spread: a rail after the first has some.
	ready    [][]verbs.SendRequest
	segments []verbs.Segment
	spread   bool

	keys keys
}

// A record describes an outstanding request.
type record struct {
	id uint64
	// address and length are the range at the target.
	address uint64
	length  int
	opcode  verbs.Opcode
	flags   verbs.Flags
	status  verbs.Status
	// striped: the request was posted on all rails, and parts are outstanding on others than the first. refused: rail 0
	// did not take it.
	striped, refused bool
	parts            uint8
}

// worse records how a part has ended. StatusFlushed says nothing about the cause, so another failure replaces it.
func (r *record) worse(s verbs.Status) {
	if r.status == verbs.StatusSuccess || r.status == verbs.StatusFlushed && s != verbs.StatusSuccess {
		r.status = s
	}
}

// config checks a configuration.
func (d *device) config(config verbs.QueuePairConfig) (verbs.QueuePairConfig, error) {
	sends, ok1 := config.SendQueue.(*completionQueue)
	receives, ok2 := config.ReceiveQueue.(*completionQueue)
	if !ok1 || !ok2 || sends.device != d || receives.device != d {
		return config, argumentError("queue pair: SendQueue and ReceiveQueue must be completion queues of this device")
	}
	for _, n := range []*int{&config.MaxSends, &config.MaxReceives} {
		if *n == 0 {
			*n = depth
		}
		if *n < 0 || *n > maxDepth {
			return config, argumentError("queue pair: depth %d, allowed are 1 to %d, or 0 for %d", *n, maxDepth, depth)
		}
	}
	return config, nil
}

// railConfig returns the configuration for a rail.
func (d *device) railConfig(rail int, config verbs.QueuePairConfig) verbs.QueuePairConfig {
	if rail == 0 {
		config.SendQueue, config.ReceiveQueue = config.SendQueue.(*completionQueue).queue, config.ReceiveQueue.(*completionQueue).queue
		return config
	}
	q := d.others[rail-1].queue
	config.SendQueue, config.ReceiveQueue, config.MaxReceives = q, q, 1
	if rail == keyRail {
		config.MaxSends += keySends
		config.MaxReceives = keyReceives
	}
	return config
}

// newPair makes a queue pair of the queue pairs on the rails, which connect makes.
func (d *device) newPair(config verbs.QueuePairConfig, connect func(rail int, config verbs.QueuePairConfig) (verbs.QueuePair, error)) (*queuePair, error) {
	config, err := d.config(config)
	if err != nil {
		return nil, err
	}
	q := &queuePair{device: d, sends: config.SendQueue.(*completionQueue), receives: config.ReceiveQueue.(*completionQueue), records: make([]record, config.MaxSends), ready: make([][]verbs.SendRequest, len(d.rails))}
	if !completion.Attach(q.sends.completed, q.receives.completed) {
		return nil, fmt.Errorf("rails: queue pair: its completion queue: %w", verbs.ErrClosed)
	}
	for rail := range d.rails {
		pair, err := connect(rail, d.railConfig(rail, config))
		if err == nil {
			q.pairs, q.numbers = append(q.pairs, pair), append(q.numbers, pair.Number())
			if _, ok := pair.(verbs.Severer); !ok {
				err = &verbs.CapabilityError{Device: d.rails[rail].Attributes().Name, Capability: "be a rail", Reason: "its queue pairs cannot be severed (verbs.Severer)"}
			}
		}
		if err != nil {
			return nil, errors.Join(of(rail, err), q.abandon())
		}
	}
	d.add(q)
	if err := q.keys.open(q); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// abandon undoes the completed steps of newPair.
func (q *queuePair) abandon() error {
	var errs []error
	for i, pair := range q.pairs {
		if err := pair.Close(); err != nil {
			errs = append(errs, of(i, err))
		}
	}
	number := uint32(0)
	if len(q.numbers) > 0 {
		number = q.numbers[0]
	}
	completion.Detach(q.sends.completed, q.receives.completed, number)
	return errors.Join(errs...)
}

// add assigns a queue pair its index.
func (d *device) add(q *queuePair) {
	d.mu.Lock()
	defer d.mu.Unlock()
	pairs := slices.Clone(*d.pairs.Load())
	if q.place = slices.Index(pairs, nil); q.place < 0 {
		q.place = len(pairs)
		pairs = append(pairs, nil)
	}
	pairs[q.place] = q
	d.pairs.Store(&pairs)
}

func (d *device) remove(q *queuePair) {
	d.mu.Lock()
	defer d.mu.Unlock()
	pairs := slices.Clone(*d.pairs.Load())
	pairs[q.place] = nil
	d.pairs.Store(&pairs)
}

// pair returns the queue pair of a rail's completion, or nil if it was closed meanwhile.
func (d *device) pair(id uint64, rail int, number uint32) *queuePair {
	pairs := *d.pairs.Load()
	if place := id >> 32; place < uint64(len(pairs)) {
		if q := pairs[place]; q != nil && q.numbers[rail] == number {
			return q
		}
	}
	return nil
}

// numbered returns the queue pair with a number, or nil if it was closed meanwhile.
func (d *device) numbered(number uint32) *queuePair {
	for _, q := range *d.pairs.Load() {
		if q != nil && q.numbers[0] == number {
			return q
		}
	}
	return nil
}

// Number returns the number of the queue pair of rail 0.
func (q *queuePair) Number() uint32 { return q.numbers[0] }

// State returns StateReady if all rails are ready, and StateError if one has failed.
func (q *queuePair) State() verbs.State {
	if q.failed.Load() {
		return verbs.StateError
	}
	state := verbs.StateReady
	for _, pair := range q.pairs {
		switch pair.State() {
		case verbs.StateError:
			return verbs.StateError
		case verbs.StateConnecting:
			state = verbs.StateConnecting
		}
	}
	return state
}

// Err returns which rail has failed, and why.
func (q *queuePair) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return q.err
	}
	return q.cause()
}

// cause returns the error of the rail to blame, or nil if none has failed.
func (q *queuePair) cause() error {
	for i, pair := range q.pairs {
		if pair.Err() != nil {
			rail := q.culprit(i)
			return of(rail, q.pairs[rail].Err())
		}
	}
	return nil
}

// causeOf returns why a rail has failed after one of its requests completed with a status.
func (q *queuePair) causeOf(rail int, s verbs.Status) error {
	if q == nil {
		return nil
	}
	rail = q.culprit(rail)
	if err := q.pairs[rail].Err(); err != nil {
		return of(rail, err)
	}
	return of(rail, s)
}

// culprit returns the rail to blame when one has failed. The side that detects a failure first disconnects all rails.
// So a disconnected rail is not to blame if another has failed by itself.
func (q *queuePair) culprit(rail int) int {
	if !errors.Is(q.pairs[rail].Err(), verbs.ErrDisconnected) {
		return rail
	}
	for i, pair := range q.pairs {
		if err := pair.Err(); err != nil && !errors.Is(err, verbs.ErrDisconnected) {
			return i
		}
	}
	return rail
}

// fail puts the queue pair in StateError, unless it is in that state, and severs it on all rails, which flushes
// outstanding requests. The caller holds no mutex. For a nil queue pair it does nothing.
func (q *queuePair) fail(err error) {
	if q == nil {
		return
	}
	q.mu.Lock()
	q.recordFailure(err)
	q.mu.Unlock()
	q.sever()
}

// recordFailure records why the queue pair has failed. The caller holds mu, and calls sever after it has unlocked mu.
func (q *queuePair) recordFailure(err error) {
	if q.err == nil {
		q.err = err
		q.failed.Store(true)
	}
}

// sever ends the queue pair on all rails if it has failed.
func (q *queuePair) sever() {
	if !q.failed.Load() {
		return
	}
	q.mu.Lock()
	first := !q.severed && !q.closed
	q.severed = true
	q.mu.Unlock()
	if !first {
		return
	}
	for _, pair := range q.pairs {
		pair.(verbs.Severer).Sever()
	}
	q.keys.end(q)
	q.device.channel.Wake()
}

// Sever ends the queue pair because its peer is presumed dead.
func (q *queuePair) Sever() {
	q.fail(fmt.Errorf("rails: the connection was severed: %w", verbs.ErrDisconnected))
}

// Close destroys the queue pair.
func (q *queuePair) Close() error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.closed = true
	q.failed.Store(true)
	if q.err == nil {
		q.err = fmt.Errorf("rails: queue pair: %w", verbs.ErrClosed)
	}
	q.device.onOthers.Add(-int64(q.onOthers + q.keys.outstanding()))
	q.onOthers = 0
	q.mu.Unlock()
	q.device.remove(q)
	q.keys.end(q)
	err := q.abandon()
	if q.device.closed.Load() {
		// The rails have closed everything.
		return nil
	}
	return errors.Join(err, q.keys.close())
}

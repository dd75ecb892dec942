package verbstest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/verbs"
)

type stationConfig struct {
	Limit  time.Duration
	Driven bool
	sleep  func(device verbs.Device, ticket uint32, limit time.Duration)
	kill   func(device verbs.Device)
}

// A station is a device with what a case made on it, numbered so that a case in another process can name it.
type station struct {
	config  stationConfig
	device  verbs.Device
	opened  time.Time
	undrive func() // ends the goroutine of Config.Driven

	mu       sync.Mutex
	areas    []*heldArea
	pairs    []*heldPair
	created  []verbs.CompletionQueue
	requests []verbs.ConnectionRequest
}

type heldArea struct {
	memory []byte
	region verbs.MemoryRegion
}

type heldPair struct {
	queuePair       verbs.QueuePair
	sends, receives verbs.CompletionQueue
}

func newStation(device verbs.Device, config stationConfig) *station {
	s := &station{config: config, device: device, opened: time.Now(), undrive: func() {}}
	if s.config.sleep == nil {
		s.config.sleep = func(device verbs.Device, ticket uint32, limit time.Duration) {
			device.Channel().Sleep(ticket, limit)
		}
	}
	if config.Driven {
		s.undrive = s.drive()
	}
	return s
}

func (s *station) close() error {
	s.undrive()
	return s.device.Close()
}

// drive polls the device's queues, for no completions, whenever its channel is rung, until stop is called.
func (s *station) drive() (stop func()) {
	channel := s.device.Channel()
	var stopping atomic.Bool
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			ticket := channel.Prepare()
			if stopping.Load() {
				channel.Finish()
				return
			}
			s.serve()
			s.config.sleep(s.device, ticket, -1)
			channel.Finish()
		}
	}()
	return sync.OnceFunc(func() {
		stopping.Store(true)
		channel.Wake()
		<-stopped
	})
}

// serve polls every queue for no completions.
func (s *station) serve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, queue := range s.created {
		queue.Poll(nil)
	}
}

// newQueue makes a completion queue.
func (s *station) newQueue(capacity int) (verbs.CompletionQueue, error) {
	queue, err := s.device.CreateCompletionQueue(capacity)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.created = append(s.created, queue)
	s.mu.Unlock()
	// The goroutine that drives the device has to poll the new queue too.
	s.device.Channel().Wake()
	return queue, nil
}

// closeQueue closes a completion queue.
func (s *station) closeQueue(queue verbs.CompletionQueue) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created = slices.DeleteFunc(s.created, func(q verbs.CompletionQueue) bool { return q == queue })
	return queue.Close()
}

// clock returns the device's clock if that is virtual: there waiting takes no real time, and an event that never comes
// has not come by any virtual time.
func (s *station) clock() time.Duration {
	if s.device.Attributes().Virtual {
		return s.device.Now()
	}
	return time.Since(s.opened)
}

// await returns nil once done returns true. Between two checks it sleeps on the device's channel, until the limit.
// Whatever makes done true has to wake it.
func (s *station) await(what string, done func() bool) error {
	channel := s.device.Channel()
	end := s.clock() + s.config.Limit
	for !done() {
		ticket := channel.Prepare()
		if done() {
			channel.Finish()
			return nil
		}
		s.config.sleep(s.device, ticket, max(end-s.clock(), 0))
		channel.Finish()
		if s.clock() < end {
			continue
		}
		if done() {
			return fmt.Errorf("%s came, but the sleeper was not woken for it within %v", what, s.config.Limit)
		}
		return fmt.Errorf("%s did not come within %v", what, s.config.Limit)
	}
	return nil
}

func (s *station) area(handle int) *heldArea {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.areas[handle]
}

func (s *station) pair(handle int) *heldPair {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pairs[handle]
}

func (s *station) holdArea(a *heldArea) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.areas = append(s.areas, a)
	return len(s.areas) - 1
}

func (s *station) holdPair(p *heldPair) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pairs = append(s.pairs, p)
	return len(s.pairs) - 1
}

// register makes a region over memory.
func (s *station) register(memory []byte, access verbs.Access) (int, verbs.RemoteRegion, error) {
	region, err := s.device.RegisterMemory(memory, access)
	if err != nil {
		return 0, verbs.RemoteRegion{}, err
	}
	return s.holdArea(&heldArea{memory, region}), region.Remote(), nil
}

// sizes are the sizes of a queue pair. The zero value suffices for any case that does not need small sizes.
type sizes struct {
	// Capacity is the capacity of its completion queues; zero means 4096.
	Capacity int
	// OneQueue uses one completion queue for sends and receives.
	OneQueue bool
	// Beside is 1 + the handle of a pair whose queues are used.
	Beside                int
	MaxSends, MaxReceives int
}

// queues makes the completion queues of a pair and its configuration.
func (s *station) queues(z sizes) (*heldPair, verbs.QueuePairConfig, error) {
	held := &heldPair{}
	if z.Beside > 0 {
		beside := s.pair(z.Beside - 1)
		held.sends, held.receives = beside.sends, beside.receives
	} else {
		if z.Capacity == 0 {
			z.Capacity = 4096
		}
		var err error
		if held.sends, err = s.newQueue(z.Capacity); err != nil {
			return nil, verbs.QueuePairConfig{}, err
		}
		held.receives = held.sends
		if !z.OneQueue {
			if held.receives, err = s.newQueue(z.Capacity); err != nil {
				return nil, verbs.QueuePairConfig{}, err
			}
		}
	}
	return held, verbs.QueuePairConfig{
		SendQueue: held.sends, ReceiveQueue: held.receives,
		MaxSends: z.MaxSends, MaxReceives: z.MaxReceives,
	}, nil
}

func (s *station) connect(address string, hello []byte, z sizes) (int, error) {
	held, config, err := s.queues(z)
	if err != nil {
		return 0, err
	}
	if held.queuePair, err = s.device.Connect(address, hello, config); err != nil {
		return 0, err
	}
	return s.holdPair(held), nil
}

// find returns the connection request with a hello if it has arrived. It keeps other requests for later calls.
func (s *station) find(hello []byte) verbs.ConnectionRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	var into [3]verbs.ConnectionRequest
	for n := s.device.PollConnections(into[:]); n > 0; n = s.device.PollConnections(into[:]) {
		s.requests = append(s.requests, into[:n]...)
	}
	for i, r := range s.requests {
		if string(r.Hello()) == string(hello) {
			s.requests = append(s.requests[:i], s.requests[i+1:]...)
			return r
		}
	}
	return nil
}

// request waits for the connection request with a hello.
func (s *station) request(hello []byte) (verbs.ConnectionRequest, error) {
	var found verbs.ConnectionRequest
	err := s.await(fmt.Sprintf("a request to connect that says %q", hello), func() bool {
		found = s.find(hello)
		return found != nil
	})
	return found, err
}

func (s *station) accept(hello []byte, z sizes) (int, error) {
	held, config, err := s.queues(z)
	if err != nil {
		return 0, err
	}
	request, err := s.request(hello)
	if err != nil {
		return 0, err
	}
	if held.queuePair, err = request.Accept(config); err != nil {
		return 0, err
	}
	return s.holdPair(held), nil
}

// awaitState waits until a queue pair is in a state.
func (s *station) awaitState(p *heldPair, state verbs.State) error {
	var now verbs.State
	err := s.await(fmt.Sprintf("state %d of the queue pair", state), func() bool {
		p.sends.Poll(nil)
		now = p.queuePair.State()
		return now == state || now == verbs.StateError
	})
	if err == nil && now != state {
		err = fmt.Errorf("the queue pair failed: %w", errors.Join(p.queuePair.Err()))
	}
	return err
}

// collect waits for n completions, and returns those that arrived.
func (s *station) collect(queue verbs.CompletionQueue, n int) ([]verbs.Completion, error) {
	got := make([]verbs.Completion, 0, n)
	err := s.await(fmt.Sprintf("completion %d of %d", n, n), func() bool {
		free := got[len(got):n]
		taken := queue.Poll(free)
		got = got[:len(got)+taken]
		return len(got) == n
	})
	if err != nil {
		err = fmt.Errorf("%w; so far: %v", err, got)
	}
	return got, err
}

// awaitOne waits for one completion without an allocation, and reports whether it arrived. into has room for it.
func (s *station) awaitOne(queue verbs.CompletionQueue, into []verbs.Completion) bool {
	channel := s.device.Channel()
	end := s.clock() + s.config.Limit
	for queue.Poll(into) == 0 {
		ticket := channel.Prepare()
		if queue.Poll(into) != 0 {
			channel.Finish()
			return true
		}
		s.config.sleep(s.device, ticket, max(end-s.clock(), 0))
		channel.Finish()
		if s.clock() >= end {
			return false
		}
	}
	return true
}

// drain takes the current completions of a queue, without waiting.
func drain(queue verbs.CompletionQueue) []verbs.Completion {
	var got []verbs.Completion
	var into [16]verbs.Completion
	for n := queue.Poll(into[:]); n > 0; n = queue.Poll(into[:]) {
		got = append(got, into[:n]...)
	}
	return got
}

func (s *station) segments(named []segment) []verbs.Segment {
	var out []verbs.Segment
	for _, n := range named {
		a := s.area(n.Area)
		out = append(out, verbs.Segment{Memory: a.memory[n.From:n.To:n.To], LKey: a.region.LKey()})
	}
	return out
}

// post posts works. Then it overwrites what the contract gives back to the caller: the slices of requests and segments,
// and the data of inline requests.
func (s *station) post(p *heldPair, works []work) (int, error) {
	requests := make([]verbs.SendRequest, len(works))
	var spoil []verbs.Segment
	for i, w := range works {
		requests[i] = w.SendRequest
		segments := append([]verbs.Segment(nil), w.Segments...)
		segments = append(segments, s.segments(w.Named)...)
		data := append([]byte(nil), w.Data...)
		for _, n := range w.Pieces {
			segments = append(segments, verbs.Segment{Memory: data[:n:n]})
			data = data[n:]
		}
		requests[i].Segments = segments
		if w.Pieces != nil {
			spoil = append(spoil, segments...)
		}
	}
	n, err := p.queuePair.PostSend(requests)
	for _, segment := range spoil {
		for i := range segment.Memory {
			segment.Memory[i] ^= 0xff
		}
	}
	for i := range requests {
		clear(requests[i].Segments)
	}
	clear(requests)
	return n, err
}

func (s *station) postReceive(p *heldPair, slots []slot) (int, error) {
	requests := make([]verbs.ReceiveRequest, len(slots))
	for i, r := range slots {
		requests[i] = verbs.ReceiveRequest{ID: r.ID, Segments: s.segments(r.Named)}
	}
	n, err := p.queuePair.PostReceive(requests)
	for i := range requests {
		clear(requests[i].Segments)
	}
	clear(requests)
	return n, err
}

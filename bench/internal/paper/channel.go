package paper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/channel"
	"github.com/onesided/rma/verbs/sim"
)

// Part D: "High performance RDMA-based MPI implementation over InfiniBand", sections 6.3 and 6.4. Two ranks send
// messages on a channel: by send and receive, each of which completes at both ends, or by rings. The rest of MPI's work
// for a message takes mpiShare of the processor on each side.

const (
	// mpiShare is the rest of a message's latency that the profile leaves, for one side.
	mpiShare = 400 * time.Nanosecond
	// streamBurst is the number of messages between replies in the paper.
	streamBurst = 100
	// channelWarm is the number of rounds after which rings are used, channelRounds the number of measured rounds.
	channelWarm, channelRounds = 200, 200
	// eagerMessages is the number of eager messages in flight: no sender waits for a receive.
	eagerMessages = 64
)

// beyondOverhead is the reason why ours may save more than the paper's.
const beyondOverhead = "the paper does not print what MPI takes of the processors in both; the profile leaves it 0.8 us of a message"

func channelFigures() []*Figure {
	const profile, label = "infinihost-2003", "bytes of a message"
	send, rings := curve{short: "send", name: "send and receive, each completes"}, curve{short: "rings", name: "RDMA channel"}
	sizes := []int{4, 16, 64, 256, 1 << 10, 2 << 10}
	latency := Figure{
		name: "11", title: "latency of messages there and back", xs: sizes, unit: stats.Microseconds, yLabel: "latency (us)",
		curves: []curve{send, rings}, measure: overChannel(func(m *channelMeasured) float64 { return inMicroseconds(m.latency) }),
	}
	stream := Figure{
		name: "12", title: "bandwidth of messages, 100 between replies", xs: sizes, unit: stats.MegabytesPerSecond, yLabel: "bandwidth (MB/s, 10^6 bytes)", logarithmic: true,
		curves: latency.curves, measure: overChannel(func(m *channelMeasured) float64 { return float64(m.bytes) / m.stream.Seconds() / 1e6 }),
	}
	host := Figure{
		name: "14", title: "what a message takes of both processors", xs: sizes, unit: stats.Microseconds, yLabel: "host overhead (us)",
		curves: latency.curves, measure: overChannel(func(m *channelMeasured) float64 { return inMicroseconds(m.host) }),
	}
	polling := Figure{
		name: "20", title: "polling when nothing comes", xs: []int{1, 2, 4, 8, 16, 32, 64, 128}, counted: true, unit: stats.Microseconds, yLabel: "time of a poll (us)",
		curves:  []curve{{short: "queue", name: "the completion queue of all connections"}, {short: "rings", name: "a ring for each connection"}},
		measure: pollTimes,
	}
	first := func(p *Plot) float64 { return p.improvements()[0] }
	at := func(rings int) func(p *Plot) float64 {
		return func(p *Plot) float64 { return 1000 * p.valueAt("rings", rings) }
	}
	return []*Figure{
		latency.of("D", profile, label,
			claim{name: "saved_smallest", theirs: 24, unit: stats.Percent, of: first, source: "6.3, figure 11; the profile has it from there"},
			claim{name: "smallest", theirs: 6.8, unit: stats.Microseconds, of: func(p *Plot) float64 { return p.valueAt("rings", 4) }, source: "6.2, table 2; the profile has it from there"}),
		stream.of("D", profile, label,
			claim{name: "gain_smallest", theirs: 104, unit: stats.Percent, of: first, source: "6.3, figure 12"},
			claim{name: "least_gain", unit: stats.Percent, kind: noLess, of: leastImproved, source: "6.3: for all message ranges"}),
		host.of("D", profile, label,
			claim{name: "most_saved", theirs: 22, unit: stats.Percent, of: mostImproved, source: "6.3, figure 14", beyond: beyondOverhead}),
		polling.of("D", profile, "rings that are polled",
			claim{name: "rings_16", theirs: 140, unit: stats.Nanoseconds, of: at(16), source: "6.4, figure 20"},
			claim{name: "rings_128", theirs: 1300, unit: stats.Nanoseconds, of: at(128), source: "6.4, figure 20"}),
	}
}

// A channelMeasured holds the results for messages of a length.
type channelMeasured struct {
	bytes                 int
	latency, stream, host time.Duration
}

// overChannel measures messages by send and receive or by rings at each x, and returns value of the result.
func overChannel(value func(m *channelMeasured) float64) measurement {
	return func(_ context.Context, f *Figure, c *curve, o *Options) ([]float64, error) {
		var values []float64
		for _, bytes := range f.xs {
			s, err := f.simulator(o)
			if err != nil {
				return nil, err
			}
			options := channel.Options{EagerMessages: eagerMessages}
			if c.short == "send" {
				options.Budget, options.SignalAll = -1, true
			}
			m := channelMeasured{bytes: bytes}
			if err := m.run(s, options); err != nil {
				return nil, err
			}
			values = append(values, value(&m))
		}
		return values, nil
	}
}

// A channelRank is one of the two ranks.
type channelRank struct {
	device  *sim.Device
	poller  *channel.Poller
	end     *channel.End
	first   bool
	payload []byte
	into    [1]channel.Arrival
}

// run makes two ranks measure.
func (m *channelMeasured) run(s *sim.Simulator, options channel.Options) error {
	var busy time.Duration
	s.Trace(func(e sim.Event) {
		switch e.Kind {
		case sim.Posted, sim.Polled, sim.Copied, sim.Computed:
			busy += e.Until - e.At
		}
	})
	devices, errs := [2]*sim.Device{s.Open(), s.Open()}, [2]error{}
	for i, device := range devices {
		r := &channelRank{device: device, first: i == 0, payload: make([]byte, m.bytes)}
		s.Go(fmt.Sprint("rank ", i), func() {
			if errs[i] = r.open(devices[0].Address(), options); errs[i] == nil {
				errs[i] = m.measure(r, &busy)
			}
		})
	}
	return errors.Join(s.Run(), errs[0], errs[1])
}

// open connects the ranks.
func (r *channelRank) open(address string, options channel.Options) (err error) {
	if r.poller, err = channel.NewPoller(r.device, options); err != nil {
		return err
	}
	if !r.first {
		r.end, err = r.poller.Connect(address, nil)
		return err
	}
	var requests [1]verbs.ConnectionRequest
	for r.device.PollConnections(requests[:]) == 0 {
		r.sleep()
	}
	r.end, err = r.poller.Accept(requests[0])
	return err
}

// sleep returns when the card has a completion.
func (r *channelRank) sleep() {
	c := r.device.Channel()
	c.Sleep(c.Prepare(), time.Millisecond)
	c.Finish()
}

func (m *channelMeasured) measure(r *channelRank, busy *time.Duration) error {
	if err := r.pingPong(channelWarm); err != nil {
		return err
	}
	began, worked := r.device.Now(), *busy
	err := r.pingPong(channelRounds)
	if r.first {
		m.latency, m.host = (r.device.Now()-began)/(2*channelRounds), (*busy-worked)/(2*channelRounds)
	}
	began = r.device.Now()
	for range channelRounds / 10 {
		err = errors.Join(err, r.exchange(streamBurst))
	}
	if r.first {
		m.stream = (r.device.Now() - began) / (channelRounds / 10 * streamBurst)
	}
	return err
}

func (r *channelRank) pingPong(rounds int) (err error) {
	for range rounds {
		err = errors.Join(err, r.exchange(1))
	}
	return err
}

// exchange sends n messages of the first rank, and one back.
func (r *channelRank) exchange(n int) (err error) {
	there, back := r.send, r.receive
	if !r.first {
		there, back = back, there
	}
	for range n {
		err = errors.Join(err, there())
	}
	return errors.Join(err, back())
}

func (r *channelRank) send() error {
	r.device.Compute(mpiShare)
	for waits := false; ; waits = true {
		err := r.end.Send(r.payload)
		if !errors.Is(err, verbs.ErrQueueFull) {
			return err
		}
		r.poller.Poll(nil)
		if waits {
			r.sleep()
		}
	}
}

func (r *channelRank) receive() error {
	for r.poller.Poll(r.into[:]) == 0 {
		r.sleep()
	}
	a := &r.into[0]
	if a.Err != nil {
		return a.Err
	}
	r.device.Compute(mpiShare)
	r.device.Copy(r.payload, a.Payload)
	r.end.Release(a)
	return nil
}

// pollTimes measures the time of a poll that finds nothing.
func pollTimes(_ context.Context, f *Figure, c *curve, o *Options) ([]float64, error) {
	var values []float64
	for _, rings := range f.xs {
		s, err := f.simulator(o)
		if err != nil {
			return nil, err
		}
		device, config := s.Open(), channel.DefaultConfig()
		queue, err := device.CreateCompletionQueue(1)
		if err != nil {
			return nil, err
		}
		set := channel.NewSet(time.Second, device.Costs().PollRing)
		for range rings {
			ring := channel.New(channel.Traits{})
			memory, err := device.AllocateMemory(config.Bytes())
			if err == nil {
				err = ring.Own(config, memory)
			}
			if err != nil {
				return nil, err
			}
			set.Add(ring)
		}
		began := device.Now()
		if c.short == "queue" {
			queue.Poll(nil)
		} else {
			device.PollRings(set.Len())
			set.Next(0)
		}
		values = append(values, inMicroseconds(device.Now()-began))
	}
	return values, nil
}

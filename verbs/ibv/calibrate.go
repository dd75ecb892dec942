//go:build ibverbs && cgo && linux

package ibv

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/onesided/rma/verbs"
)

const (
	// A measurement is the best of trials trials, and ends early after a trial that takes longestTrial.
	trials       = 9
	longestTrial = time.Second
	// trialTrain is the number of requests posted together to measure the gap between two, trialBytes the number of
	// bytes moved to measure the bandwidth.
	trialTrain = 32
	trialBytes = 64 << 10
	// trialMessage is approximately the length of a window's messages.
	trialMessage = 64
	// serving is the CPU time for a message beside the work of the card and the system.
	serving = 500 * time.Nanosecond
	// A waiting caller polls for the time that it takes to sleep and be woken, at least shortestSpin and at most
	// longestSpin.
	shortestSpin = 50 * time.Microsecond
	longestSpin  = 500 * time.Microsecond
)

// usualCosts returns the typical costs of cards at the rate of the port. Copying is measured.
func (d *device) usualCosts() verbs.Costs {
	costs := d.memory.Costs()
	costs.Post, costs.Gap, costs.Serve = 200*time.Nanosecond, 20*time.Nanosecond, 5*time.Microsecond
	costs.Latency, costs.ReadLatency = time.Microsecond, 2*time.Microsecond
	costs.Bandwidth, costs.DuplexBandwidth = d.rate, 2*d.rate
	costs.Register, costs.RegisterPage = 20*time.Microsecond, 100*time.Nanosecond
	costs.Deregister, costs.DeregisterPage = 10*time.Microsecond, 50*time.Nanosecond
	return costs
}

// Costs returns the costs of the card.
func (d *device) Costs() verbs.Costs { return d.costs }

// calibrate measures the costs by two queue pairs of the card that are connected to each other. A card in software
// takes many microseconds for what a hardware card does in one. If the measurement fails, the costs stay the usual
// ones.
func (d *device) calibrate() {
	d.costs, d.attributes.Spin = d.usualCosts(), shortestSpin
	t := trial{device: d}
	defer t.close()
	if t.err = t.open(); t.err == nil {
		costs := d.costs
		if woken := t.measure(&costs); t.err == nil {
			d.costs, d.attributes.Spin = costs, min(max(woken, shortestSpin), longestSpin)
		}
	}
	d.connectionManager.eventLog.calibrated(&d.costs, t.err)
}

// A trial is two connected queue pairs and their common memory. Both send from its first half and receive into its
// second.
type trial struct {
	device *device
	queue  verbs.CompletionQueue
	pairs  [2]*queuePair
	memory []byte
	region verbs.MemoryRegion
	// err is the first error. Results after it are invalid.
	err    error
	polled [2]verbs.Completion
}

func (t *trial) open() (err error) {
	d := t.device
	if t.queue, err = d.CreateCompletionQueue(2 * trialTrain); err != nil {
		return err
	}
	for i := range t.pairs {
		if t.pairs[i], err = d.newPair(verbs.QueuePairConfig{SendQueue: t.queue, ReceiveQueue: t.queue, MaxSends: trialTrain, MaxReceives: 1}); err != nil {
			return err
		}
	}
	for i, q := range t.pairs {
		if err = q.adjoin(&t.pairs[1-i].own); err != nil {
			return err
		}
	}
	if t.memory, err = d.AllocateMemory(2 * trialBytes); err != nil {
		return err
	}
	t.region, err = d.RegisterMemory(t.memory, verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite)
	return err
}

// adjoin connects a queue pair to another of the same card. It does not resolve addresses over the network, which takes
// seconds if there is no response.
func (q *queuePair) adjoin(other *endpoint) error {
	d := q.device
	p := path{port: d.port, gidIndex: d.gid.index, timeout: d.timeout, global: d.global}
	err := p.combine(&q.own, other)
	if err == nil {
		err = q.raw.toReceive(&p)
	}
	if err == nil {
		err = q.raw.toSend(&p)
	}
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.live, q.open = true, true
		q.state.Store(uint32(verbs.StateReady))
	}
	return q.err
}

func (t *trial) close() {
	for _, q := range t.pairs {
		if q != nil {
			_ = q.Close()
		}
	}
	if t.queue != nil {
		_ = t.queue.Close()
	}
	if t.region != nil {
		_ = t.region.Deregister()
	}
	if t.memory != nil {
		_ = t.device.FreeMemory(t.memory)
	}
}

// measure measures the costs, and the time to be woken for a completion, unless there is an error.
func (t *trial) measure(costs *verbs.Costs) (woken time.Duration) {
	word := t.request(verbs.OpRDMAWrite, 8)
	write := t.best(func() time.Duration { return t.run(1, word) })
	post := t.best(func() time.Duration {
		posted := t.post(word)
		t.wait(1)
		return posted
	})
	train := slices.Repeat([]verbs.SendRequest{word}, trialTrain)
	for i := range train[1:] {
		train[i].Flags &^= verbs.Signalled
	}
	many := t.best(func() time.Duration { return t.run(1, train...) })
	read := t.best(func() time.Duration { return t.run(1, t.request(verbs.OpRDMARead, 8)) })
	long, answer := t.request(verbs.OpRDMAWrite, trialBytes), t.request(verbs.OpRDMARead, trialBytes)
	oneWay := t.best(func() time.Duration { return t.run(1, long) })
	bothWays := t.best(func() time.Duration { return t.run(2, answer, long) })
	message := t.best(func() time.Duration {
		t.receive()
		return t.run(2, t.request(verbs.OpSend, trialMessage))
	})
	slept := t.best(func() time.Duration { return t.sleep(word) })
	woken = max(slept-write, 0)

	costs.Post, costs.Gap = post, max((many-write)/(trialTrain-1), 1)
	costs.Latency, costs.ReadLatency = write/2, read
	costs.Serve = serving + 2*max(message-write, 0) + woken
	costs.Bandwidth = trialBytes / max(oneWay-write, 1).Seconds()
	if rate := t.device.rate; rate > 0 {
		costs.Bandwidth = min(costs.Bandwidth, rate)
	}
	costs.DuplexBandwidth = 2 * trialBytes / max(bothWays-read, 1).Seconds()
	costs.DuplexBandwidth = min(max(costs.DuplexBandwidth, costs.Bandwidth), 2*costs.Bandwidth)
	t.register(costs)
	return woken
}

// register measures the costs of regions.
func (t *trial) register(costs *verbs.Costs) {
	const pages = trialBytes / 4096
	region := func(bytes int) (register, deregister time.Duration) {
		deregister = math.MaxInt64
		register = t.best(func() time.Duration {
			begun := t.device.Now()
			r, err := t.device.RegisterMemory(t.memory[:bytes], verbs.LocalWrite)
			took := t.device.Now() - begun
			if t.err = err; err != nil {
				return 0
			}
			begun = t.device.Now()
			t.err = r.Deregister()
			deregister = min(deregister, t.device.Now()-begun)
			return took
		})
		return register, deregister
	}
	costs.Register, costs.Deregister = region(trialBytes / pages)
	register, deregister := region(trialBytes)
	costs.RegisterPage = max(register-costs.Register, 0) / (pages - 1)
	costs.DeregisterPage = max(deregister-costs.Deregister, 0) / (pages - 1)
}

// best returns the shortest of several trials.
func (t *trial) best(try func() time.Duration) time.Duration {
	shortest := time.Duration(math.MaxInt64)
	for range trials {
		if t.err != nil {
			return 0
		}
		shortest = min(shortest, try())
	}
	return shortest
}

// request returns a request that moves bytes from one half of the memory to the other.
func (t *trial) request(opcode verbs.Opcode, bytes int) verbs.SendRequest {
	remote := t.region.Remote()
	r := verbs.SendRequest{Opcode: opcode, Flags: verbs.Signalled, Segments: []verbs.Segment{{Memory: t.memory[:bytes], LKey: t.region.LKey()}}}
	if opcode != verbs.OpSend {
		r.RemoteAddress, r.RKey = remote.Address+trialBytes, remote.RKey
	}
	return r
}

// receive posts the receive of a message.
func (t *trial) receive() {
	r := verbs.ReceiveRequest{Segments: []verbs.Segment{{Memory: t.memory[trialBytes:], LKey: t.region.LKey()}}}
	_, t.err = t.pairs[1].PostReceive([]verbs.ReceiveRequest{r})
}

// run posts requests and waits for a number of completions.
func (t *trial) run(completions int, requests ...verbs.SendRequest) time.Duration {
	begun := t.device.Now()
	t.post(requests...)
	t.wait(completions)
	return t.device.Now() - begun
}

// sleep posts a request and sleeps until it has completed.
func (t *trial) sleep(r verbs.SendRequest) time.Duration {
	channel := t.device.Channel()
	ticket := channel.Prepare()
	defer channel.Finish()
	begun := t.device.Now()
	t.post(r)
	channel.Sleep(ticket, longestTrial)
	t.wait(1)
	return t.device.Now() - begun
}

func (t *trial) post(requests ...verbs.SendRequest) time.Duration {
	begun := t.device.Now()
	if t.err == nil {
		_, t.err = t.pairs[0].PostSend(requests)
	}
	return t.device.Now() - begun
}

// wait waits for a number of completions.
func (t *trial) wait(completions int) {
	for begun := t.device.Now(); completions > 0 && t.err == nil; {
		n := t.queue.Poll(t.polled[:])
		for i := range n {
			if s := t.polled[i].Status; s != verbs.StatusSuccess {
				t.err = s
			}
		}
		if completions -= n; n == 0 && t.device.Now()-begun > longestTrial {
			t.err = fmt.Errorf("nothing has completed for %v", longestTrial)
		}
	}
}

package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

// The figures that a profile is made from come out of the card, measured by programs.
func TestBaseFigures(t *testing.T) {
	const us = time.Microsecond
	for _, c := range []struct {
		name string
		// write is one way for a small write, message what a message by send and receive
		// takes more, zero where no source says it.
		write, message time.Duration
		// oneWay and bothWays are in 10^6 bytes a second.
		oneWay, bothWays float64
		// register is of one page, and for each further one.
		register, page time.Duration
	}{
		{"pcie-2005", 3800 * time.Nanosecond, 0, 964, 1905, 68 * us, 200},
		{"pcix-2005", 5000 * time.Nanosecond, 0, 874, 934, 68 * us, 200},
		{"connectx-ddr-2009", 1400 * time.Nanosecond, 0, 1486, 2729, 68 * us, 200},
		{"graphene-ddr", 1200 * time.Nanosecond, 0, 1950, 3900, 68 * us, 200},
		{"infini-qdr", 1300 * time.Nanosecond, 0, 3200, 6400, 68 * us, 200},
		{"infinihost-2003", 6000 * time.Nanosecond, 2100 * time.Nanosecond, 871, 934, 68 * us, 200},
		{"lioncub-2006", 3800 * time.Nanosecond, 0, 750, 1500, 68 * us, 200},
		{"ndr-2024", 1000 * time.Nanosecond, 0, 49000, 98000, 30 * us, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := simtest.Profile(t, c.name)
			write := writeLatency(t, p)
			if !near(write-p.Poll, c.write) {
				t.Errorf("a small write takes %v beside a poll, want %v", write-p.Poll, c.write)
			}
			if more := messageLatency(t, p) - write; c.message != 0 && !near(more, c.message-p.Poll) {
				t.Errorf("a small message takes %v more than a write, want %v beside the poll that both have", more, c.message-p.Poll)
			}
			if rate := bandwidth(t, p, false); !within(rate, c.oneWay) {
				t.Errorf("one direction carries %.0f MB/s, want %.0f", rate, c.oneWay)
			}
			if rate := bandwidth(t, p, true); !within(rate, c.bothWays) {
				t.Errorf("both directions carry %.0f MB/s, want %.0f", rate, c.bothWays)
			}
			if one, many := registration(t, p, 1), registration(t, p, 101); one != c.register || many-one != 100*c.page {
				t.Errorf("registering 1 page takes %v, 100 more %v; want %v and %v", one, many-one, c.register, 100*c.page)
			}
		})
	}
}

func within(got, want float64) bool { return got > want*0.98 && got < want*1.02 }

// writeLatency is half of a ping-pong of writes, which each side sees in its memory.
func writeLatency(t *testing.T, p sim.Profile) time.Duration {
	s := simtest.With(t, p, 1)
	a, b := two(t, s, 64)
	const rounds = 10
	var took time.Duration
	run(t, s, func() {
		begun := a.Now()
		for i := range uint64(rounds) {
			a.set(2*i + 1)
			a.post(b, verbs.OpRDMAWrite, 0, 8)
			a.until(func() bool { a.queue.Poll(nil); return a.word() == 2*i+2 })
		}
		took = (a.Now() - begun) / (2 * rounds)
	}, func() {
		for i := range uint64(rounds) {
			b.until(func() bool { b.queue.Poll(nil); return b.word() == 2*i+1 })
			b.set(2*i + 2)
			b.post(a, verbs.OpRDMAWrite, 0, 8)
		}
	})
	return took
}

// messageLatency is half of a ping-pong of messages.
func messageLatency(t *testing.T, p sim.Profile) time.Duration {
	s := simtest.With(t, p, 1)
	a, b := two(t, s, 64)
	const rounds = 10
	var took time.Duration
	receive := func(n, from *node) {
		_, err := n.pairs[from.Rank()].PostReceive([]verbs.ReceiveRequest{{Segments: []verbs.Segment{{Memory: n.memory[8:16], LKey: n.region.LKey()}}}})
		require.NoError(t, err)
	}
	run(t, s, func() {
		receive(a, b)
		begun := a.Now()
		for range rounds {
			a.post(b, verbs.OpSend, 0, 8)
			a.completions(1)
			receive(a, b)
		}
		took = (a.Now() - begun) / (2 * rounds)
	}, func() {
		receive(b, a)
		for range rounds {
			b.completions(1)
			receive(b, a)
			b.post(a, verbs.OpSend, 0, 8)
		}
	})
	return took
}

// bandwidth is of writes of 1 MiB, a window of them at a time, in 10^6 bytes a second.
func bandwidth(t *testing.T, p sim.Profile, both bool) float64 {
	s := simtest.With(t, p, 1)
	const size, window, total = 1 << 20, 8, 64
	a, b := two(t, s, size)
	var took time.Duration
	stream := func(from, to *node) func() {
		return func() {
			begun := from.Now()
			for range window {
				from.post(to, verbs.OpRDMAWrite, verbs.Signalled, size)
			}
			for range total - window {
				from.completions(1)
				from.post(to, verbs.OpRDMAWrite, verbs.Signalled, size)
			}
			from.completions(window)
			took = from.Now() - begun
		}
	}
	bytes := float64(size * total)
	if both {
		run(t, s, stream(a, b), stream(b, a))
		bytes *= 2
	} else {
		run(t, s, stream(a, b))
	}
	return bytes / took.Seconds() / 1e6
}

func registration(t *testing.T, p sim.Profile, pages int) (took time.Duration) {
	s := simtest.With(t, p, 1)
	d := s.Open()
	run(t, s, func() {
		memory, err := d.AllocateMemory(pages * 4096)
		require.NoError(t, err)
		begun := d.Now()
		_, err = d.RegisterMemory(memory, all)
		require.NoError(t, err)
		took = d.Now() - begun
	})
	return took
}

// What Costs says is what programs see.
func TestCostsAreMeasured(t *testing.T) {
	for _, name := range sim.Profiles()[1:] {
		t.Run(name, func(t *testing.T) {
			p := simtest.Profile(t, name)
			s := simtest.With(t, p, 1)
			a, b := two(t, s, 64)
			costs := a.Costs()
			if write := writeLatency(t, p) - p.Poll; !near(write, costs.Latency) {
				t.Errorf("a write takes %v, Costs says %v", write, costs.Latency)
			}
			run(t, s, func() {
				begun := a.Now()
				a.post(b, verbs.OpRDMARead, verbs.Signalled, 0)
				a.completions(1)
				if took := a.Now() - begun - p.Complete - p.Poll; !near(took, costs.ReadLatency) {
					t.Errorf("an empty read takes %v, Costs says %v", took, costs.ReadLatency)
				}
				begun = a.Now()
				from, to := make([]byte, 64<<10), make([]byte, 64<<10)
				a.Copy(to, from)
				if took, want := a.Now()-begun, costs.CopyLatency+time.Duration(float64(len(to))/costs.CopyBandwidth*1e9); !near(took, want) {
					t.Errorf("a copy takes %v, Costs says %v", took, want)
				}
			})
		})
	}
}

// Copies that leave the caches are slower a byte.
func TestCopiesHaveLevels(t *testing.T) {
	s := simtest.New(t, "graphene-ddr", 1)
	d := s.Open()
	run(t, s, func() {
		var last time.Duration
		for _, size := range []int{16 << 10, 1 << 20, 16 << 20} {
			from, to := make([]byte, size), make([]byte, size)
			begun := d.Now()
			d.Copy(to, from)
			perMegabyte := (d.Now() - begun) * (1 << 20) / time.Duration(size)
			require.Greater(t, perMegabyte, last)
			last = perMegabyte
		}
	})
}

func TestProfilesAreChecked(t *testing.T) {
	for _, c := range []struct {
		text   string
		change func(p *sim.Profile)
	}{
		{"Post of -1ns; allowed is 0 to 1s", func(p *sim.Profile) { p.Post = -1 }},
		{"Wire of 2s", func(p *sim.Profile) { p.Wire = 2 * time.Second }},
		{"Link of 1 bytes a second", func(p *sim.Profile) { p.Link = 1 }},
		{"MaxReads 0", func(p *sim.Profile) { p.MaxReads = 0 }},
		{"Burst 1;", func(p *sim.Profile) { p.Burst = 1 }},
		{"CopyRates[0] for 5 bytes", func(p *sim.Profile) { p.CopyRates = []sim.CopyRate{{Size: 5, Rate: 1e9}} }},
		{"CopyRates[1] for 5 bytes", func(p *sim.Profile) {
			p.CopyRates = []sim.CopyRate{{Size: 5, Rate: 1e9}, {Size: 5, Rate: 1e9}, {Rate: 1e9}}
		}},
	} {
		p := sim.Ideal()
		c.change(&p)
		_, err := sim.New(p, 1)
		require.ErrorContains(t, err, c.text)
	}
	_, err := sim.ByName("abacus")
	require.ErrorContains(t, err, `no profile "abacus"; allowed are ideal, pcie-2005`)
}

// How many bytes go before another's is not what decides how fast anything is: reads and writes
// in turns, which cross link and bus in both directions, are as fast with small bursts.
func TestBurstDoesNotDecide(t *testing.T) {
	for _, name := range []string{"pcie-2005", "pcix-2005"} {
		for _, size := range []int{64 << 10, 1 << 20} {
			var took []float64
			for _, burst := range []int{2 << 10, 16 << 10, 64 << 10} {
				p := simtest.Profile(t, name)
				p.Burst = burst
				took = append(took, inTurns(t, p, size).Seconds())
			}
			for _, other := range took {
				require.InEpsilon(t, took[0], other, 0.03, "%s, %d bytes: %v s", name, size, took)
			}
		}
	}
}

// inTurns is how long 16 reads and 16 writes take, a read first.
func inTurns(t *testing.T, p sim.Profile, size int) time.Duration {
	s := simtest.With(t, p, 1)
	a, b := two(t, s, size)
	var took time.Duration
	run(t, s, func() {
		begun := a.Now()
		for range 16 {
			a.post(b, verbs.OpRDMARead, verbs.Signalled, size)
			a.post(b, verbs.OpRDMAWrite, verbs.Signalled, size)
		}
		a.completions(32)
		took = a.Now() - begun
	}, func() {})
	return took
}

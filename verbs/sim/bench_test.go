package sim_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

// ringOf connects each rank to the next.
func ringOf(t testing.TB, s *sim.Simulator, ranks int) []*node {
	made := nodes(t, s, ranks, 4096)
	var bodies []func()
	for i, n := range made {
		bodies = append(bodies, func() {
			to := made[(i+1)%ranks]
			n.knock(to)
			into := map[int]verbs.QueuePair{}
			n.pairs, into = into, n.pairs
			n.accept(1)
			n.pairs = into
			n.ready(to)
		})
	}
	run(t, s, bodies...)
	return made
}

// steps has every rank write to its neighbor, and wait for the completion and for the
// other neighbor's write, rounds times: a stencil's traffic.
func steps(t testing.TB, s *sim.Simulator, made []*node, rounds int) {
	for i, n := range made {
		s.Go("rank", func() {
			first := n.word()
			for round := range uint64(rounds) {
				binary.NativeEndian.PutUint64(n.memory[64:], first+round+1)
				n.write(made[(i+1)%len(made)])
				for n.word() < first+round+1 {
					n.nap()
				}
				n.completions(1)
			}
		})
	}
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
}

// write posts a signalled write of the word that follows the first 64 bytes to the first.
func (n *node) write(to *node) {
	n.segment[0] = verbs.Segment{Memory: n.memory[64:72], LKey: n.region.LKey()}
	remote := to.region.Remote()
	n.request[0] = verbs.SendRequest{Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled, Segments: n.segment[:], RemoteAddress: remote.Address, RKey: remote.RKey}
	if _, err := n.pairs[to.Rank()].PostSend(n.request[:]); err != nil {
		panic(err)
	}
}

// nap sleeps until something comes.
func (n *node) nap() {
	ticket := n.Channel().Prepare()
	n.Channel().Sleep(ticket, time.Second)
	n.Channel().Finish()
}

// What an event costs in real time, with the programs that post and poll for it.
func BenchmarkEvents(b *testing.B) {
	for _, ranks := range []int{2, 64, 1024, 4096} {
		b.Run(fmt.Sprint("ranks=", ranks), func(b *testing.B) {
			s := simtest.New(b, "pcie-2005", 1)
			made := ringOf(b, s, ranks)
			steps(b, s, made, 10)
			before := s.Events()
			rounds := 0
			b.ReportAllocs()
			for b.Loop() {
				steps(b, s, made, 20)
				rounds += 20
			}
			events := float64(s.Events() - before)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/events, "ns/event")
			b.ReportMetric(events/float64(rounds)/float64(ranks), "events/write")
		})
	}
}

// The cost of letting another task run.
func BenchmarkTaskSwitch(b *testing.B) {
	for _, tasks := range []int{2, 1024} {
		b.Run(fmt.Sprint("tasks=", tasks), func(b *testing.B) {
			s := simtest.With(b, sim.Ideal(), 1)
			turns := b.N/tasks + 1
			for range tasks {
				d := s.Open()
				s.Go("", func() {
					for range turns {
						d.Channel().Sleep(d.Channel().Prepare(), time.Microsecond)
					}
				})
			}
			b.ResetTimer()
			if err := s.Run(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// Once warm, nothing that happens allocates.
func TestEventsAllocateNothing(t *testing.T) {
	if testsize.Race {
		t.Skip("skipped: the race detector allocates itself; the run without it looks")
	}
	s := simtest.New(t, "pcie-2005", 1)
	const ranks = 16
	made := ringOf(t, s, ranks)
	steps(t, s, made, 200)
	allocations := func(rounds int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		steps(t, s, made, rounds)
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	// Beginning the tasks allocates, running them does not.
	few, many := allocations(10), allocations(1010)
	if more := int64(many) - int64(few); more > 100 {
		t.Errorf("%d writes more allocate %d times more", 1000*ranks, more)
	}
}

package sim_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

// traceOf runs a program in which ranks write, read, add and send at random, and returns
// what the cards did and, sorted, what was posted.
func traceOf(t testing.TB, p sim.Profile, seed uint64) (trace []byte, posts []string) {
	const ranks, rounds = 5, 40
	s := simtest.With(t, p, seed)
	var out bytes.Buffer
	s.Trace(func(e sim.Event) {
		fmt.Fprintln(&out, e)
		if e.Kind == sim.Posted {
			posts = append(posts, fmt.Sprintf("%d to %d: opcode %d of %d bytes", e.Rank, e.Peer, e.Opcode, e.Bytes))
		}
	})
	made := nodes(t, s, ranks, 1<<17)
	var bodies []func()
	for i, n := range made {
		bodies = append(bodies, func() {
			for _, to := range made[:i] {
				n.connect(to)
			}
			n.accept(ranks - 1 - i)
			for _, other := range made {
				if q := n.pairs[other.Rank()]; q != nil {
					_, err := q.PostReceive(make([]verbs.ReceiveRequest, rounds))
					require.NoError(t, err)
				}
			}
			random := rand.New(rand.NewPCG(uint64(i), 7))
			posted := 0
			for range rounds {
				to := made[(i+1+random.IntN(ranks-1))%ranks]
				opcode := []verbs.Opcode{verbs.OpRDMAWrite, verbs.OpRDMARead, verbs.OpFetchAdd, verbs.OpSend, verbs.OpRDMAWriteImmediate}[random.IntN(5)]
				bytes, pause := random.IntN(1<<17), time.Duration(random.IntN(5000))
				if opcode == verbs.OpFetchAdd {
					bytes = 8
				}
				if opcode == verbs.OpSend {
					bytes = 0
				}
				n.post(to, opcode, verbs.Signalled, bytes)
				if posted++; posted == 8 {
					n.Compute(pause)
					n.drain(&posted, 4)
				}
			}
			n.drain(&posted, 0)
		})
	}
	run(t, s, bodies...)
	slices.Sort(posts)
	return out.Bytes(), posts
}

// drain takes completions until no more than left of the sends are outstanding.
func (n *node) drain(posted *int, left int) {
	n.until(func() bool {
		for _, c := range n.into[:n.queue.Poll(n.into[:])] {
			if c.Opcode != verbs.OpReceive && c.Opcode != verbs.OpReceiveImmediate {
				*posted--
			}
		}
		return *posted <= left
	})
}

// The same seed is the same run, to the byte. Where things take time another seed
// changes what happens at the same time and nothing else.
func TestSameSeedSameTrace(t *testing.T) {
	for _, name := range sim.Profiles() {
		t.Run(name, func(t *testing.T) {
			p := simtest.Profile(t, name)
			first, _ := traceOf(t, p, 3)
			again, _ := traceOf(t, p, 3)
			if !bytes.Equal(first, again) {
				t.Fatalf("two runs of one seed differ: %s", firstDifference(first, again))
			}
			if len(first) < 10_000 {
				t.Fatalf("the trace has %d bytes only", len(first))
			}
		})
	}
}

func TestSeedsPermuteWhatHappensAtOnce(t *testing.T) {
	first, posts := traceOf(t, sim.Ideal(), 1)
	for seed := uint64(2); seed < 5; seed++ {
		other, same := traceOf(t, sim.Ideal(), seed)
		if bytes.Equal(first, other) {
			t.Errorf("seeds 1 and %d are one run", seed)
		}
		if !slices.Equal(posts, same) {
			t.Errorf("under seeds 1 and %d programs post different requests", seed)
		}
	}
}

func firstDifference(a, b []byte) string {
	x, y := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(x), len(y)) {
		if !bytes.Equal(x[i], y[i]) {
			return fmt.Sprintf("line %d is %q and %q", i+1, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

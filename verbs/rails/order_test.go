package rails_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/rails"
	"github.com/onesided/rma/verbs/sim"
)

const (
	// targetBytes of the far side's memory are written and read, behind which there is a word that
	// it polls. The near side has that memory twice, to write from and to read into.
	targetBytes = 64 << 10
	flagAt      = targetBytes
	memoryBytes = 2*targetBytes + 64
)

// A program is what the near side does in a round, and what is so when it is over.
type program struct {
	*rand.Rand
	t         testing.TB
	near, far *node
	// holds is what the far side's memory holds once all that was posted has been carried out.
	holds    []byte
	requests []verbs.SendRequest
	// reading are those that may still be read, without a fence since.
	reading [][2]int
	// reads are what the reads of a round have to bring: the memory is compared when it is over.
	reads []read
	into  int
	log   []string
}

type read struct {
	at   int
	want []byte
}

// draw is a place of some bytes: often long, and often one that was drawn before.
func (p *program) draw() (at, n int) {
	switch p.IntN(4) {
	case 0:
		n = 1 + p.IntN(200)
	case 1:
		n = 1 + p.IntN(4000)
	default:
		n = 1 + p.IntN(targetBytes/4)
	}
	places := [][2]int{{0, targetBytes / 4}, {100, 3000}, {targetBytes / 8, targetBytes / 2}}
	if p.IntN(3) == 0 {
		place := places[p.IntN(len(places))]
		return place[0], place[1]
	}
	return p.IntN(targetBytes - n + 1), n
}

func (p *program) add(op verbs.Opcode, at, n, mine int) *verbs.SendRequest {
	var flags verbs.Flags
	if p.IntN(4) == 0 {
		flags |= verbs.Signalled
	}
	if p.IntN(12) == 0 {
		flags |= verbs.Fence
	}
	if op == verbs.OpRDMAWrite || op == verbs.OpSend {
		for _, r := range p.reading {
			if at < r[1] && r[0] < at+n {
				flags |= verbs.Fence
			}
		}
	}
	if flags&verbs.Fence != 0 {
		p.reading = nil
	}
	r := p.near.request(op, flags, mine, n, p.far, at)
	p.log = append(p.log, fmt.Sprintf("%v of %d at %d, flags %#x", op, n, at, flags))
	p.requests = append(p.requests, r)
	return &p.requests[len(p.requests)-1]
}

// round makes requests, of which the last is one by which the far side knows that all have been
// carried out: a message, or a short write to the word.
func (p *program) round(number uint64) {
	p.requests, p.reads, p.reading, p.into, p.log = nil, nil, nil, 0, nil
	for i := range targetBytes {
		p.near.memory[i] = byte(p.Uint32())
	}
	for range 1 + p.IntN(12) {
		at, n := p.draw()
		switch kind := p.IntN(8); {
		case kind == 0 && p.into+8 < targetBytes:
			at &^= 7
			if at+8 > targetBytes {
				continue
			}
			r := p.add(verbs.OpFetchAdd, at, 8, targetBytes+p.into)
			r.Operand = number
			p.reads = append(p.reads, read{p.into, bytes.Clone(p.holds[at : at+8])})
			p.into += 8
			p.reading = append(p.reading, [2]int{at, at + 8})
			binary.NativeEndian.PutUint64(p.holds[at:], binary.NativeEndian.Uint64(p.holds[at:])+number)
		case kind < 4 && p.into+n < targetBytes:
			p.add(verbs.OpRDMARead, at, n, targetBytes+p.into)
			p.reads = append(p.reads, read{p.into, bytes.Clone(p.holds[at : at+n])})
			p.into += n
			p.reading = append(p.reading, [2]int{at, at + n})
		default:
			from := p.IntN(targetBytes - n + 1)
			r := p.add(verbs.OpRDMAWrite, at, n, from)
			copy(p.holds[at:], p.near.memory[from:from+n])
			if n > 2 && p.IntN(2) == 0 {
				cut := p.IntN(n)
				s := r.Segments[0]
				r.Segments = []verbs.Segment{{Memory: s.Memory[:cut], LKey: s.LKey}, {Memory: s.Memory[cut:], LKey: s.LKey}}
			} else if n <= p.near.Attributes().MaxInline && p.IntN(2) == 0 {
				r.Flags |= verbs.Inline
				r.Segments = []verbs.Segment{{Memory: bytes.Clone(r.Segments[0].Memory)}}
			}
		}
	}
	var word [8]byte
	binary.NativeEndian.PutUint64(word[:], number)
	last := verbs.SendRequest{Opcode: verbs.OpSend, Flags: verbs.Signalled}
	if number%2 == 0 {
		last = p.near.request(verbs.OpRDMAWrite, verbs.Signalled|verbs.Inline, 0, 0, p.far, flagAt)
		last.Segments = []verbs.Segment{{Memory: word[:]}}
	}
	if len(p.reading) > 0 {
		// Atomics need not be carried out before what is behind them without a fence.
		last.Flags |= verbs.Fence
	}
	p.requests = append(p.requests, last)
	signalled := 0
	for i := range p.requests {
		p.requests[i].ID = uint64(i)
		signalled += int(p.requests[i].Flags & verbs.Signalled)
	}
	// Some rounds post all requests in one call, some one by one.
	for rest := p.requests; len(rest) > 0; {
		n := 1 + p.IntN(len(rest))
		taken, err := p.near.pair.PostSend(rest[:n])
		require.NoError(p.t, err)
		for _, r := range rest[:taken] {
			if r.Flags&verbs.Inline != 0 {
				clear(r.Segments[0].Memory)
			}
		}
		rest = rest[taken:]
	}
	previous := -1
	for _, c := range p.near.completions(signalled) {
		require.Equal(p.t, verbs.StatusSuccess, c.Status)
		require.Greater(p.t, int(c.ID), previous, "completions in order")
		previous = int(c.ID)
	}
	for i, r := range p.reads {
		require.True(p.t, bytes.Equal(r.want, p.near.memory[targetBytes+r.at:][:len(r.want)]), "round %d, read %d of %v", number, i, p.log)
	}
}

// Random programs have the effect that they would have in order, whatever the rails' cards do to
// the time that things take: when the far side has a message, or sees a short write, all that was
// posted before has been carried out.
func TestOrder(t *testing.T) {
	striped, programs := uint64(0), testsize.N(20)
	for seed := range testsize.Samples(t, 20) {
		cards := 2 + int(seed%3)
		s := simtest.New(t, []string{"ideal", "ndr-2024", "connectx-ddr-2009"}[seed%3], seed)
		nodes := simulated(t, s, 0, 2, cards, memoryBytes)
		near, far := nodes[0], nodes[1]
		for _, n := range nodes {
			rails.StripeFrom(n.Device, 128+int(seed%30)*16)
		}
		random := rand.New(rand.NewPCG(seed, 3))
		for range 20 {
			require.NoError(t, s.Inject(sim.Fault{Kind: sim.Delay, Rank: random.IntN(2 * cards), Direction: sim.Direction(random.IntN(2)),
				At: time.Duration(random.IntN(3e6)), By: time.Duration(1 + random.IntN(5e4)), For: time.Duration(1 + random.IntN(2e5))}))
		}
		p := &program{Rand: random, t: t, near: near, far: far, holds: make([]byte, targetBytes)}
		const rounds = 60
		s.Go("far", func() {
			far.accept()
			word := far.memory[flagAt:]
			for number := uint64(1); number <= rounds; number++ {
				if number%2 == 0 {
					far.until(func() bool { far.queue.Poll(nil); return binary.NativeEndian.Uint64(word) == number })
				} else {
					_, err := far.pair.PostReceive([]verbs.ReceiveRequest{{}})
					require.NoError(t, err)
					far.received()
				}
				require.True(t, bytes.Equal(p.holds, far.memory[:targetBytes]), "seed %d, round %d: %v", seed, number, p.log)
				require.Equal(t, verbs.StatusSuccess, far.do(verbs.SendRequest{}).Status)
			}
		})
		s.Go("near", func() {
			near.connect(far.Address())
			for number := uint64(1); number <= rounds; number++ {
				_, err := near.pair.PostReceive([]verbs.ReceiveRequest{{}})
				require.NoError(t, err)
				p.round(number)
				near.received()
			}
		})
		require.NoError(t, s.Run())
		striped += near.cards[1].Frames()
	}
	t.Logf("%d parts went over rail 1", striped)
	require.Greater(t, striped, uint64(30*programs))
}

package sim_test

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
	"github.com/onesided/rma/verbs/sim"
)

// randomProfile is a card of which anything may be slow, fast, narrow or absent.
func randomProfile(random *rand.Rand) sim.Profile {
	span := func() time.Duration {
		if random.IntN(3) == 0 {
			return 0
		}
		return time.Duration(random.IntN(1 << random.IntN(14)))
	}
	rate := func() float64 { return []float64{0, 1e7, 1e9, 1e11}[random.IntN(4)] }
	return sim.Profile{
		Name: "random", Post: span(), PostSegment: span(), PostReceive: span(), InlineRate: rate(), Poll: span(), Complete: span(),
		Fetch: span(), FetchInline: span(), Gap: span(), GapSegment: span(), Place: span(), Receive: span(),
		TurnRead: span(), TurnAtomic: span(), Acknowledge: span(), Return: span(), StarvedWait: span(), Wire: span(), Connect: span(),
		MaxInline: 64, MaxReads: 1 + random.IntN(4), Link: rate(), Bus: rate(), BusShared: random.IntN(2) == 0, Burst: 256 << random.IntN(8),
	}
}

// The memory of each rank: a counter that all others add to, what it writes from and reads
// into, and for each other rank a slot and an inbox.
const (
	slotBytes = 3000
	counterAt = 0
	sourceAt  = 64
)

// A player writes to its slot at each peer, reads that back, adds to the peers' counters
// and sends messages that the peers are late to receive.
type player struct {
	*node
	random   *rand.Rand
	peers    []*player
	slots    []byte // what it has written, by peer
	posted   int
	got      map[int]int // messages received, by peer
	late     func() bool // whether to wait before it posts the first receives
	problems []string
}

// slotAt is where a rank's slot is at any peer, inboxAt where its messages go.
func slotAt(rank int) int                { return 8192 + rank*2*slotBytes }
func inboxAt(rank int) int               { return slotAt(rank) + slotBytes }
func (p *player) say(f string, a ...any) { p.problems = append(p.problems, fmt.Sprintf(f, a...)) }

func (p *player) segment(from, n int) []verbs.Segment {
	return []verbs.Segment{{Memory: p.memory[from : from+n], LKey: p.region.LKey()}}
}

func (p *player) do(to *player, r verbs.SendRequest, remote int) {
	there := to.region.Remote()
	r.RemoteAddress, r.RKey = there.Address+uint64(remote), there.RKey
	r.Flags |= verbs.Signalled
	if _, err := p.pairs[to.Rank()].PostSend([]verbs.SendRequest{r}); err != nil {
		p.say("PostSend: %v", err)
		return
	}
	p.posted++
}

// settle takes completions until nothing is outstanding.
func (p *player) settle() {
	p.until(func() bool {
		for _, c := range p.into[:p.queue.Poll(p.into[:])] {
			if c.Status != verbs.StatusSuccess {
				p.say("completion %+v", c)
			}
			if c.Opcode == verbs.OpReceive {
				p.received(c)
			} else {
				p.posted--
			}
		}
		return p.posted == 0
	})
}

// received checks a message: the ranks send their messages' numbers, in order.
func (p *player) received(c verbs.Completion) {
	from := int(c.ID)
	want := p.got[from]
	p.got[from]++
	inbox := p.memory[inboxAt(from):]
	if got := int(binary.NativeEndian.Uint64(inbox)); got != want || c.Bytes != 8 {
		p.say("message %d of rank %d says %d", want, from, got)
	}
	p.receive(from)
}

// receive posts a receive for the next message of a peer.
func (p *player) receive(from int) {
	_, err := p.pairs[from].PostReceive([]verbs.ReceiveRequest{{ID: uint64(from), Segments: p.segment(inboxAt(from), 8)}})
	if err != nil {
		p.say("PostReceive: %v", err)
	}
}

const playerRounds = 12

func (p *player) play() {
	for _, to := range p.peers[:p.Rank()] {
		p.connect(to.node)
	}
	p.accept(len(p.peers) - 1 - p.Rank())
	p.Compute(time.Duration(p.random.IntN(20_000)))
	for p.late() {
		p.Compute(ms)
	}
	for _, from := range p.peers {
		if from != p {
			p.receive(from.Rank())
		}
	}
	for round := range playerRounds {
		for _, to := range p.peers {
			if to == p {
				continue
			}
			n := p.random.IntN(slotBytes)
			source := sourceAt
			for i := range n {
				p.memory[source+i] = byte(p.random.Uint32())
			}
			slot := p.slots[to.Rank()*slotBytes:][:slotBytes]
			copy(slot, p.memory[source:source+n])
			// One after the other on one queue pair: the read sees the write.
			p.do(to, verbs.SendRequest{Opcode: verbs.OpRDMAWrite, Segments: p.segment(source, n)}, slotAt(p.Rank()))
			p.do(to, verbs.SendRequest{Opcode: verbs.OpRDMARead, Segments: p.segment(sourceAt+slotBytes, slotBytes)}, slotAt(p.Rank()))
			p.do(to, verbs.SendRequest{Opcode: verbs.OpFetchAdd, Operand: 1, Segments: p.segment(8, 8)}, counterAt)
			number := binary.NativeEndian.AppendUint64(nil, uint64(round))
			p.do(to, verbs.SendRequest{Opcode: verbs.OpSend, Flags: verbs.Inline, Segments: []verbs.Segment{{Memory: number}}}, 0)
			p.settle()
			if got := p.memory[sourceAt+slotBytes:][:slotBytes]; !bytes.Equal(got, slot) {
				p.say("round %d: a read from rank %d is not what was written", round, to.Rank())
			}
		}
	}
	// The others may still send.
	p.until(func() bool {
		for _, c := range p.into[:p.queue.Poll(p.into[:])] {
			p.received(c)
		}
		for _, from := range p.peers {
			if from != p && p.got[from.Rank()] < playerRounds {
				return false
			}
		}
		return true
	})
}

// playOn runs the players on a random card, and checks memory and time at the end. In the programs of every other
// seed the last player posts no receive before a message has missed one.
func playOn(t testing.TB, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 99))
	profile := randomProfile(random)
	s := simtest.With(t, profile, seed)
	starved := 0
	s.Trace(func(e sim.Event) {
		if e.Kind == sim.Starved {
			starved++
		}
	})
	ranks := 2 + random.IntN(3)
	var players []*player
	for i, n := range nodes(t, s, ranks, 8192+ranks*2*slotBytes) {
		players = append(players, &player{node: n, random: rand.New(rand.NewPCG(seed, uint64(i))), slots: make([]byte, ranks*slotBytes), got: map[int]int{}})
	}
	for i, p := range players {
		p.peers = players
		p.late = func() bool { return seed%2 == 0 && i == ranks-1 && starved == 0 && p.Now() < time.Second }
		s.Go(fmt.Sprint("rank ", i), p.play)
	}
	require.NoError(t, s.Run(), "seed %d", seed)
	for _, p := range players {
		for _, problem := range p.problems {
			t.Errorf("seed %d, rank %d: %s", seed, p.Rank(), problem)
		}
		if got, want := p.word(), uint64((ranks-1)*playerRounds); got != want {
			t.Errorf("seed %d, rank %d: the counter is %d, want %d", seed, p.Rank(), got, want)
		}
		for _, to := range players {
			if to != p && !bytes.Equal(to.memory[slotAt(p.Rank()):][:slotBytes], p.slots[to.Rank()*slotBytes:][:slotBytes]) {
				t.Errorf("seed %d: rank %d's slot at rank %d differs from what it wrote", seed, p.Rank(), to.Rank())
			}
		}
		// Every round reads a slot of each peer over one link.
		read := float64((ranks - 1) * playerRounds * slotBytes)
		if profile.Link > 0 && p.Now().Seconds() < read/profile.Link {
			t.Errorf("seed %d: %v bytes were read in %v, over a link of %v a second", seed, read, p.Now(), profile.Link)
		}
	}
	require.True(t, starved > 0 || seed%2 != 0, "seed %d: no message came before its receive", seed)
}

func TestProgramsOnRandomCards(t *testing.T) {
	for seed := range testsize.Samples(t, 100) {
		playOn(t, seed)
	}
}

func FuzzProgramsOnRandomCards(f *testing.F) {
	f.Add(uint64(1000))
	f.Fuzz(func(t *testing.T, seed uint64) { playOn(t, seed) })
}

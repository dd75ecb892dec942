package sim_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

// The program that faults come to: a ring, in which each rank, round by round, writes a
// block to its right neighbor, tells of it by a message, waits for its left neighbor's,
// checks that, reads back what it wrote, and adds to the neighbor's counter. A rank that
// finds a connection failed, or that nothing comes for long, or is told of a death, ends
// with an error, and closes its device, so that the others end too.
type survivor struct {
	*node
	random      *rand.Rand
	ring        []*survivor
	right, left verbs.QueuePair
	lost        error
	messages    int
	posted      int
	rounds      int
	err         error
	done        bool
}

const (
	survivorPlans  = 600 // in a run of plain size
	survivorRounds = 8
	blockBytes     = 1 << 12
	// What a survivor's memory holds: a counter, a word to read into, an inbox, what it
	// writes, what it reads back, and its neighbor's block of each round.
	wordAt, inboxAt2, outAt, backAt, blockAt = 8, 64, 4096, 4096 + blockBytes, 4096 + 2*blockBytes
	survivorBytes                            = 4096 + (2+survivorRounds)*blockBytes
)

var errSilence = errors.New("nothing has come for long")

// await looks until done, or until something is wrong. No sleep is without a limit.
func (p *survivor) await(done func() bool) error {
	limit := p.Now() + 10*time.Second
	for {
		for _, c := range p.into[:p.queue.Poll(p.into[:])] {
			switch {
			case c.Status != verbs.StatusSuccess:
				return fmt.Errorf("request %d: %w", c.ID, c.Status)
			case c.Opcode == verbs.OpReceive:
				p.messages++
			default:
				p.posted--
			}
		}
		if done() {
			return nil
		}
		for _, q := range []verbs.QueuePair{p.right, p.left} {
			if q != nil && q.State() == verbs.StateError {
				return q.Err()
			}
		}
		if p.lost != nil {
			return p.lost
		}
		if p.Now() > limit {
			return errSilence
		}
		ticket := p.Channel().Prepare()
		p.Channel().Sleep(ticket, 100*ms)
		p.Channel().Finish()
	}
}

func (p *survivor) post(opcode verbs.Opcode, from, n, remote int) error {
	r := p.ring[(p.Rank()+1)%len(p.ring)].region.Remote()
	_, err := p.right.PostSend([]verbs.SendRequest{{
		Opcode: opcode, Flags: verbs.Signalled, Operand: 1, RemoteAddress: r.Address + uint64(remote), RKey: r.RKey,
		Segments: []verbs.Segment{{Memory: p.memory[from : from+n], LKey: p.region.LKey()}},
	}})
	p.posted++
	return err
}

func (p *survivor) receive() error {
	_, err := p.left.PostReceive([]verbs.ReceiveRequest{{Segments: []verbs.Segment{{Memory: p.memory[inboxAt2 : inboxAt2+8], LKey: p.region.LKey()}}}})
	return err
}

// block is what a rank writes in a round.
func block(rank, round int) []byte {
	b := make([]byte, blockBytes)
	for i := range b {
		b[i] = byte(i*7 + rank*31 + round*131)
	}
	return b
}

func (p *survivor) play() (err error) {
	next := p.ring[(p.Rank()+1)%len(p.ring)]
	stop, err := p.Watch(next.Address(), func(cause error) {
		p.lost = cause
		p.Channel().Wake()
	})
	if err != nil {
		return err
	}
	defer stop()
	if p.right, err = p.Connect(next.Address(), nil, p.config()); err != nil {
		return err
	}
	var refused error
	err = p.await(func() bool {
		var requests [1]verbs.ConnectionRequest
		if p.PollConnections(requests[:]) == 1 {
			p.left, refused = requests[0].Accept(p.config())
		}
		return refused != nil || p.left != nil && p.right.State() == verbs.StateReady
	})
	if err = errors.Join(err, refused); err != nil {
		return err
	}
	if err := p.receive(); err != nil {
		return err
	}
	for p.rounds < survivorRounds {
		if err := p.round(); err != nil {
			return err
		}
		p.rounds++
	}
	return nil
}

func (p *survivor) round() error {
	copy(p.memory[outAt:outAt+blockBytes], block(p.Rank(), p.rounds))
	extra, err := p.RegisterMemory(p.memory[:8], verbs.LocalWrite)
	if err != nil {
		return err
	}
	p.Compute(time.Duration(p.random.IntN(50)) * us)
	binary.NativeEndian.PutUint64(p.memory[wordAt:], uint64(p.rounds))
	for _, err := range []error{
		p.post(verbs.OpRDMAWrite, outAt, blockBytes, blockAt+p.rounds*blockBytes),
		p.post(verbs.OpSend, wordAt, 8, 0),
	} {
		if err != nil {
			return err
		}
	}
	if err := p.await(func() bool { return p.posted == 0 && p.messages > p.rounds }); err != nil {
		return err
	}
	before := (p.Rank() + len(p.ring) - 1) % len(p.ring)
	if got := binary.NativeEndian.Uint64(p.memory[inboxAt2:]); got != uint64(p.rounds) {
		return fmt.Errorf("WRONG DATA: message %d in round %d", got, p.rounds)
	}
	if !bytes.Equal(p.memory[blockAt+p.rounds*blockBytes:][:blockBytes], block(before, p.rounds)) {
		return fmt.Errorf("WRONG DATA: the block of rank %d in round %d", before, p.rounds)
	}
	if err := p.receive(); err != nil {
		return err
	}
	if err := extra.Deregister(); err != nil {
		return err
	}
	for _, err := range []error{
		p.post(verbs.OpRDMARead, backAt, blockBytes, blockAt+p.rounds*blockBytes),
		p.post(verbs.OpFetchAdd, wordAt, 8, 0),
	} {
		if err != nil {
			return err
		}
	}
	if err := p.await(func() bool { return p.posted == 0 }); err != nil {
		return err
	}
	if !bytes.Equal(p.memory[backAt:backAt+blockBytes], block(p.Rank(), p.rounds)) {
		return fmt.Errorf("WRONG DATA: what was read back in round %d", p.rounds)
	}
	if got := binary.NativeEndian.Uint64(p.memory[wordAt:]); got != uint64(p.rounds) {
		return fmt.Errorf("WRONG DATA: the counter was %d in round %d", got, p.rounds)
	}
	return nil
}

// survive runs the program under a plan, and checks how everybody ended. It tells how many
// ended well.
func survive(t testing.TB, seed uint64, ranks int, plan sim.Faults, trace func(sim.Event)) (well int) {
	t.Helper()
	p := simtest.Profile(t, sim.Profiles()[1+int(seed)%(len(sim.Profiles())-1)])
	s := simtest.With(t, p, seed)
	s.Patience(time.Minute)
	s.Trace(trace)
	var ring []*survivor
	for i, n := range nodes(t, s, ranks, survivorBytes) {
		ring = append(ring, &survivor{node: n, random: rand.New(rand.NewPCG(seed, uint64(i)))})
	}
	require.NoError(t, s.Inject(plan...))
	for i, n := range ring {
		n.ring = ring
		n.Go(fmt.Sprint("rank ", i), func() {
			defer func() {
				// Of a killed rank none of this has an effect, and the last does not return.
				if n.right != nil {
					_ = n.right.Close()
				}
				n.Channel().Sleep(n.Channel().Prepare(), ms)
				_ = n.Device.Close()
				n.done = true
			}()
			if n.err = n.play(); n.err == nil {
				// The others may still need it. What happens now is no error of its.
				_ = n.await(func() bool {
					return !slices.ContainsFunc(ring, func(other *survivor) bool { return !other.done && other.rounds < survivorRounds })
				})
			}
		})
	}
	err := s.Run()
	require.NoError(t, err, "seed %d, %d ranks, %s, faults:\n%s", seed, ranks, p.Name, plan)
	victims := map[int]bool{}
	for _, f := range plan {
		if f.Kind == sim.Kill {
			victims[f.Rank] = true
		}
		for _, rank := range f.Ranks {
			victims[rank] = true
		}
	}
	for i, n := range ring {
		switch {
		case !n.done:
			require.True(t, victims[i], "seed %d: rank %d has not ended:\n%s", seed, i, plan)
		case n.err == nil:
			require.Equal(t, survivorRounds, n.rounds, "seed %d: rank %d:\n%s", seed, i, plan)
			well++
		default:
			// The right errors are those of a card, a peer, or memory.
			known := errors.Is(n.err, sim.ErrFault) || errors.Is(n.err, verbs.ErrPeerGone) || errors.Is(n.err, verbs.ErrQueueFull) ||
				errors.Is(n.err, errSilence) || errors.Is(n.err, verbs.StatusRetryExceeded) || errors.Is(n.err, verbs.StatusFlushed)
			require.True(t, known, "seed %d: rank %d ends with %v:\n%s", seed, i, n.err, plan)
		}
	}
	return well
}

// surviveTraced gives the trace, too.
func surviveTraced(t testing.TB, seed uint64, ranks int, plan sim.Faults) (trace []byte, well int) {
	t.Helper()
	var out bytes.Buffer
	well = survive(t, seed, ranks, plan, func(e sim.Event) { fmt.Fprintln(&out, e) })
	return out.Bytes(), well
}

// planOf gives what a seed has in store.
func planOf(seed uint64) (ranks int, plan sim.Faults) {
	ranks = 2 + int(seed%7)
	return ranks, sim.Plan(seed, ranks, []time.Duration{ms, 2 * ms, 10 * ms}[seed%3])
}

// Whatever breaks, and however it comes together: who survives ends, with the right data
// or a right error, and nothing is left behind. A seed that runs alone
// logs its plan, which can be kept as text, and its trace.
func TestSurvivorsEnd(t *testing.T) {
	plans := uint64(testsize.N(survivorPlans))
	if plans == 1 {
		ranks, plan := planOf(testsize.Seed())
		t.Logf("%d ranks, faults:\n%s", ranks, plan)
		trace, well := surviveTraced(t, testsize.Seed(), ranks, plan)
		t.Logf("%d ended well\n%s", well, trace)
		return
	}
	before := runtime.NumGoroutine()
	struck := map[string]int{} // by kind, once for each rank that has it
	count := func(e sim.Event) {
		if e.Kind == sim.Struck {
			struck[strings.Fields(e.Fault)[2]]++ // at TIME KIND
		}
	}
	all, well := 0, 0
	for seed := range testsize.Samples(t, survivorPlans) {
		ranks, plan := planOf(seed)
		n := survive(t, seed, ranks, plan, count)
		all += ranks
		well += n
	}
	t.Logf("%d of %d ranks ended well, faults that came: %v", well, all, struck)
	const enough = 300 // plans in which some of each kind come
	if plans < enough {
		return
	}
	require.Len(t, struck, 10)
	require.Greater(t, well, all/10)
	require.Less(t, well, all*9/10)
	await.True(t, "the goroutines of all plans to end", func() bool { return runtime.NumGoroutine() <= before })
}

// A plan that was written and read again is the same run, to the byte. Each has a fault that strikes, though it may heal.
func TestPlansAreReplayed(t *testing.T) {
	for seed := range testsize.Samples(t, 50) {
		ranks, plan := planOf(seed)
		plan = append(plan, sim.Fault{Kind: sim.Delay, Event: 1, By: us, For: ms})
		again, err := sim.ParseFaults(plan.String())
		require.NoError(t, err)
		require.Equal(t, plan, again)
		first, _ := surviveTraced(t, seed, ranks, plan)
		second, _ := surviveTraced(t, seed, ranks, again)
		if !bytes.Equal(first, second) {
			t.Fatalf("two runs of seed %d differ: %s", seed, firstDifference(first, second))
		}
		require.True(t, bytes.Contains(first, []byte("struck")), "seed %d: nothing strikes", seed)
	}
}

// Delays, stalls that end in time, senders that wait for receives and slow processors
// hurt nobody.
func TestWhatHealsHurtsNobody(t *testing.T) {
	for seed := range testsize.Samples(t, 100) {
		ranks, plan := planOf(seed)
		plan = slices.DeleteFunc(plan, func(f sim.Fault) bool {
			return f.Kind != sim.Delay && f.Kind != sim.Starve && f.Kind != sim.Slow && (f.Kind != sim.Stall || f.For == 0)
		})
		well := survive(t, seed, ranks, plan, nil)
		require.Equal(t, ranks, well, "seed %d:\n%s", seed, plan)
	}
}

// A rank is killed after any event that there is, and loses its power.
func TestKillAfterEveryEvent(t *testing.T) {
	const ranks = 3
	for _, kind := range []sim.FaultKind{sim.Kill, sim.PowerLoss, sim.FailPair, sim.Exhaust, sim.Overflow} {
		struck := true
		n := uint64(1)
		for ; struck; n++ {
			struck = false
			survive(t, 5, ranks, sim.Faults{{Kind: kind, Event: n, Rank: 1, Peer: 2, Ranks: []int{1}}}, func(e sim.Event) {
				struck = struck || e.Kind == sim.Struck
			})
		}
		require.Greater(t, n, uint64(300))
	}
}

package job

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/onesided/rma/internal/errtext"
)

// A tally is what ranks tell each other in a Meeting of those that they have sent something
// to, so that each knows, when all have met, how many will have sent to it.
//
// Ranks that map each other add up what they know in the memory of the first of their host,
// which leads: it tells the leaders of other hosts, and at the end its mates. See
// tally_host.go. So only leaders send messages, and a rank that shares memory with nobody is
// one.
//
// The hosts at distance d after a leader's are those that come d later, in a circle. The
// count of a rank travels to the leader of its host by the bits of its distance, from the
// lowest: in round k of the dissemination a leader tells the one of the host 2^k after its
// own the counts of ranks whose distance has k as its lowest bit, and that one, from which
// they are 2^k less, adds what it has itself. Each way is one of its own, so that nothing is
// counted twice, whatever the number of hosts.
//
// What comes is of this number or of the next, which others may have begun: a parity has its
// own counts. Those of a number are clear before any other rank can come to the number after
// the next.
type tally struct {
	// at is where in a block the words are that mates share.
	at int
	// heard is the last number that this rank has heard of, in each round. A count of coming,
	// of each rank, belongs to progress until this rank has heard of the round that it came
	// before: they are atomic for ranks that keep no rules. some tells that a rank has sent
	// anything to anybody. Who does not lead has none.
	heard  []atomic.Uint32
	coming [2][]atomic.Uint32
	some   [2]atomic.Bool
	// calls[k] are those by which ranks have come that this one has heard of in round k, by parity.
	calls [][2]atomic.Uint64
	// used tells that this rank has called Tally, and number is the last that it has begun.
	// announced tells that it has told the one that leads; that one has told told rounds, and
	// of the round at hand parts. finished tells that it has come to its end, with result and
	// any, left that this rank has told its mates that it has come to EndTally.
	used        atomic.Bool
	number      atomic.Uint32
	announced   bool
	told, parts int
	finished    bool
	result      int
	any         bool
	left        bool
	text        []byte
	// ours is what the mates of a rank that leads have told it, as it was looked at once.
	ours []uint32
	// blocks are those of the mates that this rank tells.
	blocks []tallyBlock
}

const (
	// NoTally is the place of its words in the blocks of a Meeting that is none.
	NoTally = 0
	// roundOfTally is in messages of rounds between leaders.
	roundOfTally = 1
	// countBytes is the length of a count: its rank and how much it is, of 32 bits each.
	countBytes = 8
)

// open makes place for the counts that will come.
func (t *tally) open(w *World, at int) {
	t.at = at
	if w.leads() {
		t.ours = make([]uint32, w.size)
	}
	if hosts := len(w.hosts.ranks); hosts > 1 && w.leads() {
		t.heard = make([]atomic.Uint32, bits.Len(uint(hosts-1)))
		t.calls = make([][2]atomic.Uint64, len(t.heard))
		t.coming = [2][]atomic.Uint32{make([]atomic.Uint32, w.size), make([]atomic.Uint32, w.size)}
	}
}

// Tally is Meet in which each rank tells of the ranks that it has sent something to, and
// returns how many have sent something to this one, and whether any rank has to any. When
// ctx has ended it, the same call goes on.
func (m *Meeting) Tally(ctx context.Context, op string, call uint8, number uint32, sent func(rank int) bool) (arrivals int, anything bool, err error) {
	t, w := &m.tally, m.world
	if !t.used.Load() || t.number.Load() != number {
		t.used.Store(true)
		t.number.Store(number)
		t.announced, t.told, t.parts, t.finished, t.left = false, 0, 0, false, false
	}
	if t.finished {
		return t.result, t.any, nil
	}
	m.own.come().Store(number)
	m.mine = calledBy(call, w.rank)
	all := m.mine
	ours := func(rank int) uint32 {
		if sent(rank) {
			return 1
		}
		return 0
	}
	if len(w.mates()) > 1 {
		w.RaceRelease()
		defer w.RaceAcquire()
		lead, err := m.announce(ctx, op, sent)
		if err != nil {
			return 0, false, err
		}
		if !w.leads() {
			return m.hearResult(ctx, op, number)
		}
		if err := m.hearMates(ctx, op, lead); err != nil {
			return 0, false, err
		}
		mates := uint32(len(w.mates()))
		for rank := range t.ours {
			if t.ours[rank] = lead.count(rank).Load(); t.ours[rank] > mates {
				return 0, false, fmt.Errorf("%s: %w: %d of %d ranks of this host are said to have sent something to rank %d", errtext.Call("world", op), ErrMessage, t.ours[rank], mates, rank)
			}
		}
		ours = func(rank int) uint32 { return t.ours[rank] }
		all = lead.callers().all()
	}
	if err := m.exchange(ctx, op, number, ours, all); err != nil {
		return 0, false, err
	}
	t.finished = true
	return t.result, t.any, nil
}

// exchange is the part of the one that leads a host, whose ranks have sent what ours tells, and have come by the calls of all.
func (m *Meeting) exchange(ctx context.Context, op string, number uint32, ours func(rank int) uint32, all called) error {
	t, w := &m.tally, m.world
	anything := false
	for rank := 0; rank < w.size && !anything; rank++ {
		anything = ours(rank) > 0
	}
	here, hosts := w.hosts.of[w.rank], len(w.hosts.ranks)
	for k, distance := 0, 1; distance < hosts; k, distance = k+1, 2*distance {
		if k >= t.told {
			if err := m.tellCounts(ctx, op, k, ours, anything, all); err != nil {
				return err
			}
			t.told, t.parts = k+1, 0
		}
		if heard := &t.heard[k]; !reached(heard, number) {
			from := w.hosts.ranks[(here-distance+hosts)%hosts][0]
			if err := m.hear(ctx, op, heard, number, from); err != nil {
				return err
			}
		}
		if all != 0 {
			all = all.and(called(t.calls[k][number&1].Load()))
		}
	}
	coming := func(int) uint32 { return 0 }
	parity := number & 1
	if hosts > 1 {
		coming = func(rank int) uint32 { return t.coming[parity][rank].Load() }
		anything = anything || t.some[parity].Load()
	}
	t.result, t.any = int(coming(w.rank)+ours(w.rank)), anything
	if err := m.tellMates(ctx, op, number, func(rank int) uint32 { return coming(rank) + ours(rank) }, all); err != nil {
		return err
	}
	if hosts > 1 {
		for rank := range w.size {
			t.coming[parity][rank].Store(0)
		}
		t.some[parity].Store(false)
	}
	return compared(op, number, all)
}

// FirstTold is the rank to which this one tells the first round of a Tally; -1 if to none.
func (m *Meeting) FirstTold() int {
	w := m.world
	if !w.leads() || len(w.hosts.ranks) == 1 {
		return -1
	}
	return w.leaderAfter(1)
}

// leaderAfter leads the host at a distance after this rank's.
func (w *World) leaderAfter(distance int) int {
	return w.hosts.ranks[(w.hosts.of[w.rank]+distance)%len(w.hosts.ranks)][0]
}

// tellCounts tells the rank that is to hear of round k of this rank what it has to know.
func (m *Meeting) tellCounts(ctx context.Context, op string, k int, ours func(rank int) uint32, anything bool, all called) error {
	t, w := &m.tally, m.world
	distance, number := 1<<k, t.number.Load()
	to := w.leaderAfter(distance)
	l, err := w.Link(to)
	if err != nil {
		return m.unreached(op, to, err)
	}
	parity := number & 1
	coming := t.coming[parity]
	t.text = t.text[:0]
	part, most := 0, l.MaxPayload()/countBytes*countBytes
	tell := func(kind uint8) error {
		if part++; part <= t.parts {
			t.text = t.text[:0]
			return nil
		}
		some := uint64(0)
		if anything || t.some[parity].Load() {
			some = 1
		}
		err := l.TellWithin(ctx, &Message{Kind: kind, Service: m.number, A: uint8(k), B: roundOfTally, X: uint64(number), Y: uint64(all), Z: some}, t.text)
		if err == nil {
			t.parts = part
		}
		t.text = t.text[:0]
		return err
	}
	here, hosts := w.hosts.of[w.rank], len(w.hosts.ranks)
	for d := distance; d < hosts; d += 2 * distance {
		for _, rank := range w.hosts.ranks[(here+d)%hosts] {
			n := coming[rank].Load() + ours(rank)
			if n == 0 {
				continue
			}
			if len(t.text) == most {
				if err := tell(kindCounts); err != nil {
					return m.unreached(op, to, err)
				}
			}
			t.text = binary.LittleEndian.AppendUint32(t.text, uint32(rank))
			t.text = binary.LittleEndian.AppendUint32(t.text, n)
		}
	}
	if err := tell(kindRound); err != nil {
		return m.unreached(op, to, err)
	}
	l.Post()
	return nil
}

// hears tells whether this rank hears of round k from another.
func (t *tally) hears(w *World, k, from int) bool {
	return k < len(t.heard) && from == w.leaderAfter(len(w.hosts.ranks)-1<<k)
}

// count adds what a rank tells in round k.
func (m *Meeting) count(message *Message, payload []byte) error {
	t, w, k := &m.tally, m.world, int(message.A)
	if len(payload)%countBytes != 0 {
		return fmt.Errorf("%w: %d bytes of counts", ErrMessage, len(payload))
	}
	parity := uint32(message.X) & 1
	if message.Z != 0 {
		t.some[parity].Store(true)
	}
	coming, hosts := t.coming[parity], len(w.hosts.ranks)
	for ; len(payload) > 0; payload = payload[countBytes:] {
		rank, n := binary.LittleEndian.Uint32(payload), binary.LittleEndian.Uint32(payload[4:])
		size := uint32(w.size)
		if rank >= size || n > size || coming[rank].Load()+n > size {
			return fmt.Errorf("%w: a count of %d for rank %d in round %d", ErrMessage, n, rank, k)
		}
		// It has come by 2^k, and lower bits of its way were gone before.
		d := (w.hosts.of[rank] - w.hosts.of[w.rank] + hosts) % hosts
		if d+1<<k >= hosts || d&(2<<k-1) != 0 {
			return fmt.Errorf("%w: a count for rank %d, of the host %d after this one's, in round %d", ErrMessage, rank, d, k)
		}
		coming[rank].Add(n)
	}
	return nil
}

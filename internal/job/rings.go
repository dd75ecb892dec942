package job

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/channel"
)

// Letters of links go by the RDMA channel (package verbs/channel) where that suits the card: a short
// one is written into a ring in the memory of the rank that it is for, if that looks there, and takes no
// receive and no completion. Each rank looks at the rings of those that send it most.
//
// Invariants:
//
//   - All letters of a link are numbered, by ring or not, when they are posted, and served in
//     that order.
//   - A letter in a ring is copied before it is served: its sender could change it meanwhile.
//     Its buffers are credited when it has been served, so that who sends more than is
//     served waits.
//   - A rank that goes to sleep has told all whose rings it looks at to write there no more: a
//     letter by a receive wakes it.

// rings are the polling set of a card, nil if it has none, and the rings that a rank looks at.
type rings struct {
	set *channel.Set
	// poller is nil if the device is told of no looks. In virtual time a rank looks that many rounds for
	// what may come in rings before it sleeps.
	poller verbs.RingPoller
	rounds int
	// links are those of the job, by rank, and behind them, from teams on, those of teams. The ID
	// of a link's channel is its place.
	links []*Link
	teams int
	// copies are of letters that are served.
	copies [][]byte
	due    bool
	// some tells that there are rings that others have been told to write to.
	some atomic.Bool
}

// newRings is nil where letters go better without.
func newRings(device verbs.Device, size int) *rings {
	set := channel.SetOf(device, channel.DefaultBudget)
	if set == nil {
		return nil
	}
	r := &rings{set: set, links: make([]*Link, size), teams: size}
	r.poller, _ = device.(verbs.RingPoller)
	if costs := device.Costs(); costs.PollRing > 0 {
		r.rounds = min(int(4*costs.ReadLatency/costs.PollRing), mostRounds)
	}
	return r
}

// add gives a link its place.
func (r *rings) add(l *Link) {
	id := &l.ring.channel.ID
	if r.links[*id] != l && l.world != l.world.root {
		for *id = r.teams; *id < len(r.links) && r.links[*id] != nil; *id++ {
		}
		if *id == len(r.links) {
			r.links = append(r.links, nil)
		}
	}
	r.links[*id] = l
}

// ring is what a link has of rings.
type ring struct {
	channel *channel.Channel
	// own is the one that the rank writes to, offered tells that it was told of it; ringless that there is
	// no memory for it. They belong to progress.
	own               verbs.MemoryRegion
	offered, ringless bool
	// mirror is like that which this rank writes to, which the rank has offered. stamped is how
	// many of the link's requests have been numbered. marks are of what is not known to have completed,
	// if the card resends. The mutex of the link guards them.
	mirror  verbs.MemoryRegion
	offer   channel.Offer
	stamped int
	// flag is the second request of the letter that was stamped last, if flagDue: the word by which it is
	// told from what was there.
	flag        [1]verbs.SendRequest
	flagSegment [1]verbs.Segment
	flagDue     bool
	marks       []ringMark
	marked      uint32
}

// A ringMark is what has been written to a ring with a request, which is signalled.
type ringMark struct {
	sequence uint64
	mark     uint32
}

// ringOf is what a link over a card has of rings.
func ringOf(c *card, rank int) ring {
	r := ring{channel: channel.New(channel.TraitsOf(&c.attributes))}
	r.channel.ID = rank
	return r
}

// stamp numbers the letters that are about to be posted, and has those go by ring that can, up to one
// that takes two requests. It is called with the mutex of the link.
func (l *Link) stamp() {
	g := &l.ring
	for ; g.stamped < len(l.requests) && !g.flagDue; g.stamped++ {
		r := &l.requests[g.stamped]
		if r.Opcode != verbs.OpSend {
			continue
		}
		letter := r.Segments[0].Memory
		if !l.stampIntoRing(r, letter[channel.StampBytes:]) {
			g.channel.StampEager(letter)
		}
	}
}

// stampIntoRing has a letter go by the rank's ring, if there is room.
func (l *Link) stampIntoRing(r *verbs.SendRequest, messages []byte) bool {
	g := &l.ring
	if g.mirror == nil {
		return false
	}
	for len(g.marks) > 0 && g.marks[0].sequence <= l.done.Load() {
		g.channel.Completed(g.marks[0].mark)
		g.marks = g.marks[:copy(g.marks, g.marks[1:])]
	}
	place := g.channel.Place(len(messages))
	if place == nil {
		return false
	}
	l.world.Copied(copy(place, messages))
	w := g.channel.Seal(len(messages))
	r.Opcode, r.RemoteAddress, r.RKey = verbs.OpRDMAWrite, g.offer.Address+uint64(w.Offset), g.offer.RKey
	r.Segments[0] = verbs.Segment{Memory: g.mirror.Memory()[w.Offset:][:w.Length], LKey: g.mirror.LKey()}
	r.Flags &^= verbs.Inline
	if w.Length <= l.mostInline() {
		r.Flags |= verbs.Inline
	}
	if l.card.attributes.Resends {
		l.markRing(r)
	}
	if w.Flagged {
		g.flagSegment[0] = verbs.Segment{Memory: g.mirror.Memory()[w.Flag:][:channel.FlagBytes], LKey: g.mirror.LKey()}
		g.flag[0] = verbs.SendRequest{
			ID: r.ID, Opcode: verbs.OpRDMAWrite, Flags: r.Flags & verbs.Signalled, Segments: g.flagSegment[:],
			RemoteAddress: g.offer.Address + uint64(w.Flag), RKey: g.offer.RKey,
		}
		if channel.FlagBytes <= l.mostInline() {
			g.flag[0].Flags |= verbs.Inline
		}
		r.Flags &^= verbs.Signalled
		g.flagDue = true
	}
	return true
}

// markRing has it heard of often enough that what was written to the ring has completed.
func (l *Link) markRing(r *verbs.SendRequest) {
	g := &l.ring
	mark := g.channel.Mark()
	if r.Flags&verbs.Signalled == 0 && mark-g.marked < uint32(g.offer.Buffers/4) {
		return
	}
	r.Flags |= verbs.Signalled
	l.signalled = max(l.signalled, r.ID)
	g.marks, g.marked = append(g.marks, ringMark{r.ID, mark}), mark
}

// lendRing takes the offer of a ring.
func (l *Link) lendRing(payload []byte) error {
	var offer channel.Offer
	if err := offer.Decode(payload); err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if shape := channel.DefaultConfig(); offer.Config != shape {
		return fmt.Errorf("%w: a ring of %+v, allowed is %+v", ErrMessage, offer.Config, shape)
	}
	l.mu.Lock()
	lent := l.ring.mirror != nil
	l.mu.Unlock()
	if lent {
		return fmt.Errorf("%w: a second ring", ErrMessage)
	}
	region, err := channel.RingMemory(l.card.device, offer.Bytes(), 0)
	if err != nil {
		l.world.logger.Debug("no memory for what is written to a ring", "rank", l.rank, "why", err)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ring.channel.Lend(offer.Config, region.Memory()); err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, errors.Join(err, channel.FreeRing(l.card.device, region)))
	}
	l.ring.mirror, l.ring.offer = region, offer
	return nil
}

// closeRing ends what a link has of rings. It is called with the mutexes of progress and of the link.
func (l *Link) closeRing() {
	if r := l.card.rings; r != nil && r.links[l.ring.channel.ID] == l {
		r.set.Remove(l.ring.channel)
		r.links[l.ring.channel.ID] = nil
	}
	_ = channel.FreeRing(l.card.device, l.ring.own)
	_ = channel.FreeRing(l.card.device, l.ring.mirror)
	l.ring.own, l.ring.mirror = nil, nil
}

// pollRings serves what is in the rings that are looked at.
func (c *card) pollRings() (n int) {
	r := c.rings
	if r.poller != nil && r.set.Len() > 0 {
		r.poller.PollRings(r.set.Len())
	}
	for i := r.set.Next(0); i >= 0; i = r.set.Next(i + 1) {
		l := r.links[r.set.At(i).ID]
		for l.broken.Load() == nil && l.takeFromRing() {
			n++
		}
		l.tellOwed()
	}
	return n
}

// takeFromRing takes the next letter from the rank's ring, if it is there.
func (l *Link) takeFromRing() bool {
	m, some, err := l.ring.channel.Poll()
	if err != nil {
		l.ends(fmt.Errorf("%w: %w", ErrMessage, err))
		return false
	}
	if !some {
		return false
	}
	r := l.card.rings
	n := len(r.copies)
	if n == 0 {
		r.copies = append(r.copies, make([]byte, channel.DefaultConfig().MaxMessage))
		n++
	}
	letter := r.copies[n-1][:len(m.Payload)]
	r.copies = r.copies[:n-1]
	l.world.Copied(copy(letter, m.Payload))
	l.heardFrom()
	l.came(arrival{slot: inRing, memory: letter, ring: m, copied: letter})
	return true
}

// inRing is the slot of what has come in a ring.
const inRing = -1

// heardFrom counts a letter.
func (l *Link) heardFrom() {
	if r := l.card.rings; r != nil && r.set.CountMessage(l.ring.channel) {
		r.due = true
	}
}

// takeLetter takes a letter that has come by a receive, behind those in the ring that were sent before it.
func (l *Link) takeLetter(slot int, letter []byte) {
	for vain := false; ; {
		next, err := l.ring.channel.TakeEager(letter)
		switch {
		case err != nil:
			l.ends(fmt.Errorf("%w: %w", ErrMessage, err))
			return
		case next:
			l.heardFrom()
			l.came(arrival{slot: slot, memory: letter[channel.StampBytes:]})
			l.tellOwed()
			return
		case l.takeFromRing():
			vain = false
		case l.ending != nil:
			return
		case vain:
			l.ends(fmt.Errorf("%w: a letter whose turn does not come", ErrMessage))
			return
		default:
			// There was one that says nothing, perhaps.
			vain = true
		}
	}
}

// tellOwed tells the rank what it has to be told of rings, though there is no letter for it.
func (l *Link) tellOwed() {
	l.mu.Lock()
	owed := l.broken.Load() == nil && l.ring.channel.NeedsStamp()
	l.mu.Unlock()
	if owed {
		l.Reply(&Message{Kind: kindNothing}, nil)
	}
}

// reviewRings looks who sends most now. It is called in the poll that has heard something, behind which
// nobody sleeps.
func (c *card) reviewRings() {
	r := c.rings
	r.due = false
	join, leave := r.set.Review()
	for _, one := range join {
		if l := r.links[one.ID]; l != nil && l.makeRing() {
			r.set.Add(one)
			r.some.Store(true)
			// Who sleeps is to have nobody write there.
			c.device.Channel().Wake()
			if !l.ring.offered {
				l.ring.offered = true
				var offer [channel.OfferBytes]byte
				o := channel.OfferOf(channel.DefaultConfig(), l.ring.own.Remote())
				o.Encode(offer[:])
				l.Reply(&Message{Kind: kindRing}, offer[:])
			} else {
				l.tellOwed()
			}
		}
	}
	c.tellLeft(leave)
}

// makeRing makes the ring that the rank writes to, and tells whether there is one.
func (l *Link) makeRing() bool {
	g := &l.ring
	if g.own != nil || g.ringless {
		return g.own != nil
	}
	config := channel.DefaultConfig()
	region, err := channel.RingMemory(l.card.device, config.Bytes(), verbs.LocalWrite|verbs.RemoteWrite)
	if err == nil {
		if err = g.channel.Own(config, region.Memory()); err != nil {
			err = errors.Join(err, channel.FreeRing(l.card.device, region))
		}
	}
	if err != nil {
		g.ringless = true
		l.world.logger.Debug("no memory for a ring", "rank", l.rank, "why", err)
		return false
	}
	g.own = region
	return true
}

// tellLeft tells those who have left the set.
func (c *card) tellLeft(leave []*channel.Channel) {
	for _, one := range leave {
		if l := c.rings.links[one.ID]; l != nil {
			l.tellOwed()
		}
	}
}

// mostRounds bounds what a simulation takes.
const mostRounds = 4000

// still reports whether polling again finds nothing new in virtual time: no time passes, and no peer may write to a ring.
func (c *card) still() bool { return c.rings == nil || !c.rings.some.Load() }

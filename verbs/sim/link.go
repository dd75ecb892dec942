package sim

import "time"

// A resource is taken by one thing after the other.
type resource struct{ free time.Duration }

// An outlet is the way out of a card. Those who have something to send take turns, each
// with up to Profile.Burst bytes.
type outlet struct {
	free  time.Duration
	flows ring[flow]
	// armed: somebody will look again, or is looking.
	armed  bool
	frames uint64
	// faults are those of this direction of the link.
	faults hindrance
}

// An inlet is the way in to a card.
type inlet struct {
	free   time.Duration
	faults hindrance
	// held is what has arrived and waits for the end of a fault, in order.
	held ring[held]
	// releasing: the first of it has waited, and is let in.
	releasing bool
}

// A flow is what a queue pair sends: requests, or answers with data to its peer's.
type flow struct {
	pair    *queuePair
	answers bool
}

// offer has a flow wait for its turn.
func (d *Device) offer(f flow) {
	*d.out.flows.extend() = f
	if !d.out.armed {
		d.serve()
	}
}

// serve gives the flows that wait their turns.
func (d *Device) serve() {
	o := &d.out
	o.armed = true
	for o.flows.count > 0 {
		if free := max(o.free, o.faults.until); free > d.sim.now {
			if free < forever {
				d.sim.schedule(free, d.lane, evPort).device = d
			}
			return
		}
		f := *o.flows.at(0)
		o.flows.drop(1)
		if f.answers {
			f.pair.sendAnswer()
		} else {
			f.pair.sendPiece()
		}
	}
	o.armed = false
}

// transmit puts n bytes on the wire and tells when the first and the last is there. They
// pass bus and link at once, so that the slower decides; the way out is taken for gap
// longer. A bus that the other direction has taken is waited for.
func (d *Device) transmit(n int, gap time.Duration) (first, last time.Duration) {
	p := &d.sim.profile
	first = max(d.sim.now, d.out.free)
	if n > 0 {
		first = max(first, d.busOut.free)
		d.busOut.free = first + takes(n, p.Bus)
	}
	last = first + max(takes(n, p.Link), takes(n, p.Bus))
	d.out.free = last + gap
	return first, last
}

// take takes n bytes from the wire, of which the first is here and the last will be at
// until, and tells when the first and the last are past link and bus. What comes while the
// way in is taken waits in the network, which holds any amount.
func (d *Device) take(n int, until time.Duration) (first, last time.Duration) {
	p := &d.sim.profile
	first = max(d.sim.now, d.in.free)
	if n > 0 {
		first = max(first, d.busIn.free)
		d.busIn.free = first + takes(n, p.Bus)
	}
	d.in.free = first + takes(n, p.Link)
	return first, max(first+max(takes(n, p.Link), takes(n, p.Bus)), until)
}

package sim

import "time"

// An output is the sending side of a card. Its users alternate, each with at most Profile.Burst bytes.
type output struct {
	// free is when the link is free, bus when the bus is, and fetched when the card can fetch more.
	free, bus, fetched time.Duration
	frames             uint64
	// armed: a later check is scheduled, or one is in progress.
	armed bool
}

// An input is the receiving side of a card. Its bus is the output's if the directions share it.
type input struct{ free, bus time.Duration }

// A flow is what a queue pair sends: requests, or responses with data to its peer's requests.
type flow struct {
	pair     *queuePair
	response bool
}

// offer makes a flow wait for its turn.
func (d *Device) offer(f flow) {
	if d.out.armed || d.blocked() {
		*d.flows.extend() = f
		d.out.armed = true
		return
	}
	d.out.armed = true
	f.send()
	d.serve()
}

func (f *flow) send() {
	if f.response {
		f.pair.sendResponse()
	} else {
		f.pair.sendPiece()
	}
}

// serve gives the waiting flows their turns.
func (d *Device) serve() {
	d.out.armed = true
	for d.flows.count > 0 {
		if d.blocked() {
			return
		}
		f := *d.flows.at(0)
		d.flows.drop(1)
		f.send()
	}
	d.out.armed = false
}

// blocked reports whether the card can fetch nothing now. It then schedules another check for when it can.
func (d *Device) blocked() bool {
	s := d.sim
	free := d.out.fetched
	if s.faulty {
		free = max(free, d.faultsOut.until)
	}
	if free <= s.now {
		return false
	}
	if free < forever {
		s.schedule(free, d.lane, evPort).what = d
	}
	return true
}

// transmit puts n bytes on the wire and returns when the first and the last arrive. The card fetches them over the bus
// while earlier fetched bytes pass the link. It has room for one burst of these, so the slower of bus and link decides.
// The output stays occupied for gap longer.
func (d *Device) transmit(n int, gap time.Duration) (first, last time.Duration) {
	p, o := &d.sim.profile, &d.out
	begun := max(d.sim.now, o.fetched)
	first = max(begun, o.free)
	if n > 0 {
		fetch := max(begun, o.bus)
		o.bus = fetch + takes(n, p.Bus)
		first = max(first, fetch)
		last = o.bus
	}
	o.fetched = max(last, first)
	last = max(last, first+takes(n, p.Link))
	o.free = last + gap
	return first, last
}

// come lets in a piece that is at the card's input, or makes it wait in the network, which holds any amount.
func (d *Device) come(e *event) {
	if d.waiting.count == 0 && d.in.free <= d.sim.now {
		admit(e)
		return
	}
	if d.waiting.count == 0 {
		d.sim.schedule(d.in.free, d.lane, evEnter).what = d
	}
	*d.waiting.extend() = *e
}

// enter lets in the piece that has waited longest.
func (d *Device) enter() {
	first := d.waiting.at(0)
	e := *first
	*first = event{}
	d.waiting.drop(1)
	admit(&e)
	if d.waiting.count > 0 {
		d.sim.schedule(d.in.free, d.lane, evEnter).what = d
	}
}

func admit(e *event) {
	if e.kind == evArrive {
		e.pair.arrive(e)
	} else {
		e.pair.arriveBack(e)
	}
}

// take takes n bytes from the wire, the first of which is here and the last of which will be at until. It returns when
// the first and the last have passed link and bus. What the bus cannot take yet waits in the card, which has room for
// one burst. After that, the input is occupied.
func (d *Device) take(n int, until time.Duration) (first, last time.Duration) {
	p := &d.sim.profile
	first = d.sim.now
	d.in.free = first + takes(n, p.Link)
	last = max(d.in.free, until)
	if n > 0 {
		bus := &d.in.bus
		if p.BusShared {
			bus = &d.out.bus
		}
		place := max(first, *bus)
		*bus = place + takes(n, p.Bus)
		d.in.free = max(d.in.free, place)
		last = max(last, *bus)
	}
	return first, last
}

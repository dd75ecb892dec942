package transfer

// A flow is the time at which each of two stations has finished the pieces so far. Pieces pass one station after the
// other: the copying processor and then the wire for a put, the wire and then the processor for a get.
type flow struct{ first, second float64 }

// pass sends count pieces through the stations. first and second are their times at each.
func (f *flow) pass(count int, first, second float64) {
	n := float64(count)
	f.second = max(f.second+times(n, second), f.first+first+times(n, second), f.first+times(n, first)+second)
	f.first += times(n, first)
}

// copies sends the copied pieces of a shape through the stations.
func (m *Model) copies(f *flow, s *shape, write bool) {
	pass := func(count int, bytes float64) {
		processor, wire := m.post+m.copy+times(bytes, m.copying), times(bytes, m.wire)+m.gap
		if write {
			f.pass(count, processor, wire)
		} else {
			f.pass(count, wire, processor)
		}
	}
	if !write && s.flat > 0 {
		pass(s.flat, s.longest)
	}
	next := s.first
	if !write {
		next = s.last()
	}
	for range s.growing {
		pass(1, next)
		if write {
			next = times(next, s.growth)
		} else {
			next /= s.growth
		}
	}
	if write && s.flat > 0 {
		pass(s.flat, s.longest)
	}
}

// played is how many registered pieces are simulated one by one. Further pieces proceed at the pace of the slowest
// station.
const played = 16

// Time returns the nanoseconds that protocol p takes for an unregistered buffer. They run from the call until the data
// has arrived and one-time registrations have ended. The target's window is registered. The way back of a put's
// completion is left out, because all protocols wait for it.
func (m *Model) Time(p Protocol, write bool, bytes int) float64 {
	bytes = max(bytes, 0)
	latency := m.latency
	if !write {
		latency = m.readLatency
	}
	registered, piece := m.registered(p, bytes)
	switch {
	case bytes == 0:
		return m.post + latency
	case registered == 0:
		s := m.copied(p, float64(bytes))
		return m.copyingTakes(&s, write) + latency
	case p == Pipeline || p == CachingPipeline:
		return m.pipeline(bytes-registered, registered, piece, p == Pipeline, write, latency)
	}
	took := m.Registration(bytes) + m.post + latency + times(float64(bytes), m.wire)
	if p == Register {
		took += m.Deregistration(bytes)
	}
	return took
}

// copyingTakes returns the time of the copied pieces without the latency. No gap follows the last piece.
func (m *Model) copyingTakes(s *shape, write bool) float64 {
	if write {
		var f flow
		m.copies(&f, s, write)
		return f.second - m.gap
	}
	f := flow{first: -m.gap}
	m.copies(&f, s, write)
	return f.second
}

// pipeline is Time with registered pieces after a head. ends is true if their registrations are for one use.
func (m *Model) pipeline(head, registered, piece int, ends, write bool, latency float64) float64 {
	var f flow  // of the processor and the wire
	var s shape // of the head
	if head > 0 {
		s = m.heading(float64(head), write)
		if write {
			m.copies(&f, &s, write)
		} else {
			f.pass(s.count(), m.post, times(s.longest, m.wire)+m.gap)
		}
	}
	count := (registered + piece - 1) / piece
	bytes := float64(registered) / float64(count)
	last := bytes
	if !ends {
		bytes = float64(min(piece, registered))
		last = float64(registered - (count-1)*piece)
	}
	begin, end, wire := m.registration(bytes)+m.post, m.deregistration(bytes), times(bytes, m.wire)+m.gap
	depth := m.depth
	pace := max(begin, wire)
	if ends {
		pace = max(begin+end, wire, (begin+end+wire+latency)/float64(depth))
	}
	var done [3]float64
	one := min(count, played)
	for i := range one {
		if ends && i >= depth {
			f.first = max(f.first, done[i%depth]) + end
		}
		if i == one-1 {
			begin, wire = m.registration(last)+m.post, times(last, m.wire)+m.gap
		}
		f.pass(1, begin, wire)
		done[i%depth] = f.second - m.gap + latency
	}
	if more := float64(count - one); more > 0 {
		f.first, f.second = f.first+times(more, pace), f.second+times(more, pace)
		for i := range done {
			done[i] += times(more, pace)
		}
	}
	if head > 0 && !write {
		// The head has arrived meanwhile, or arrives now.
		g := flow{m.post + latency - m.gap, f.first}
		g.pass(s.count(), times(s.longest, m.wire)+m.gap, m.copy+times(s.longest, m.copying))
		f.first = g.second
	}
	if ends {
		for i := max(one-depth, 0); i < one; i++ {
			f.first = max(f.first, done[i%depth]) + end
		}
	}
	return max(f.first, f.second-m.gap+latency)
}

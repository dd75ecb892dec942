package transfer

// A flow is when each of two stations, which pieces pass one after the other, is done with those so
// far: the processor that copies and the wire for a put, the wire and then the processor for a get.
type flow struct{ first, second float64 }

// pass has so many pieces pass that take so long at each station.
func (f *flow) pass(count int, first, second float64) {
	n := float64(count)
	f.second = max(f.second+times(n, second), f.first+first+times(n, second), f.first+times(n, first)+second)
	f.first += times(n, first)
}

// copies has the copied pieces of a shape pass.
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

// played is how many registered pieces are played one by one. Those beyond go at the pace of the
// slowest.
const played = 16

// Time is from the call until the data has arrived, and what was registered for this once is not
// any more, of a buffer that the card does not know. The target's window is registered. That
// news of a piece must come back to the origin of a put is left out: all protocols wait for it.
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

// copyingTakes is what copied pieces take beside the latency. Behind the last is no gap.
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

// pipeline is Time with registered pieces behind a head. They end for this once, or are kept.
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
		// The head has come meanwhile, or comes.
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

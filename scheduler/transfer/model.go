package transfer

import (
	"math"
	"math/bits"
	"time"

	"github.com/onesided/rma/verbs"
)

const (
	// page is the unit in which a card maps memory, in bytes.
	page = 4096
	// shortest is the shortest copied piece that is worth cutting, in bytes: the smallest packet of InfiniBand.
	shortest = 256
	// line is the alignment of copied pieces, counted from the first.
	line = 64
	// flat is the growth of pieces below which they may as well have one length.
	flat = 1.05
	// usualFirst and usualGrowth are the values that the authors of paper C found almost as good as the best (section
	// 4, Discussion). They are for a card of unknown costs.
	usualFirst, usualGrowth = 12 << 10, 1.5
	// shortestPiece, usualPiece and longestPiece are lengths of registered pieces.
	shortestPiece, usualPiece, longestPiece = 64 << 10, 1 << 20, 16 << 20
)

// A Model predicts how long operations take on a card, from the costs of the card. Times are in nanoseconds, and in
// nanoseconds per byte.
type Model struct {
	// latency and readLatency do not include post, which is the processor's.
	post, gap, latency, readLatency float64
	// serve is the time of a message on the processor of each side.
	serve float64
	// wire and copying are per byte, copy is the additional time of each copy.
	wire, copying, copy          float64
	register, registerPage       float64
	deregister, deregisterPage   float64
	registering, registeringPage float64 // both of a registration and its end
	stage, line                  int

	// known is set if the times of a byte for copying and on the wire are known.
	known bool
	// growth is q of paper C. It is at most flat where pieces of one length are better. knee is the length of the first
	// piece of a very long operation.
	growth, knee float64
	// hide is the length of registered pieces from which on the wire hides the processor's time.
	hide         float64
	piece, depth int
}

// NewModel returns the model of a card with these costs. stage is the longest available piece of registered memory, in
// bytes. A stage below 1 counts as 1.
func NewModel(costs *verbs.Costs, stage int) *Model {
	m := &Model{
		post: nanoseconds(costs.Post), gap: nanoseconds(costs.Gap), serve: nanoseconds(costs.Serve) / 2,
		wire: perByte(costs.Bandwidth), copying: perByte(costs.CopyBandwidth), copy: nanoseconds(costs.CopyLatency),
		register: nanoseconds(costs.Register), registerPage: nanoseconds(costs.RegisterPage),
		deregister: nanoseconds(costs.Deregister), deregisterPage: nanoseconds(costs.DeregisterPage),
		stage: max(stage, 1), line: line,
	}
	m.latency = max(nanoseconds(costs.Latency)-m.post, 0)
	m.readLatency = max(nanoseconds(costs.ReadLatency)-m.post, 0)
	m.registering, m.registeringPage = m.register+m.deregister, m.registerPage+m.deregisterPage
	if m.stage < 16*line {
		m.line = 1
	}
	m.known = m.wire > 0 && m.copying > 0
	m.growth, m.knee = usualGrowth, usualFirst
	if m.known {
		m.growth = m.wire / m.copying
		if m.growth > flat {
			m.knee = max(m.gap, m.post+m.copy) / m.copying / math.Log(m.growth)
		}
	}

	m.hide = m.hiding(m.registering+m.latency, m.registeringPage)
	m.piece, m.depth = usualPiece, 3
	if m.hide <= longestPiece {
		m.depth = 2
	}
	// Pieces that are kept do not wait for earlier pieces to be deregistered.
	if hide := m.hiding(m.register, m.registerPage); hide < longestPiece {
		m.piece = max(1<<bits.Len(uint(hide)), shortestPiece)
	}
	return m
}

// hiding returns how long pieces must be to take no longer to register than on the wire. register is the time of the
// first page, furtherPage of each further one. It returns infinity if no length suffices.
func (m *Model) hiding(register, furtherPage float64) float64 {
	per := float64(furtherPage / page)
	if m.wire <= per {
		return math.Inf(1)
	}
	return max(register+m.post-m.gap, 0) / (m.wire - per)
}

func nanoseconds(d time.Duration) float64 { return max(float64(d), 0) }

// perByte returns the time of a byte at a rate, 0 if the rate is unknown. Rates are limited to 1 to 10^18 bytes per
// second.
func perByte(rate float64) float64 {
	if !(rate > 0) {
		return 0
	}
	return float64(time.Second) / min(max(rate, 1), 1e18)
}

// times returns a product that is rounded before it is added to anything, so that all processors decide alike.
func times(a, b float64) float64 { return float64(a * b) }

// Direct returns the time of a put from registered memory.
func (m *Model) Direct(bytes int) float64 {
	return m.post + m.latency + times(float64(bytes), m.wire)
}

// DirectRead returns the time of a get into registered memory.
func (m *Model) DirectRead(bytes int) float64 {
	return m.post + m.readLatency + times(float64(bytes), m.wire)
}

// Registration returns the time to register bytes that begin at a page boundary.
func (m *Model) Registration(bytes int) float64 { return m.registration(float64(bytes)) }

// Deregistration returns the time to deregister bytes that begin at a page boundary.
func (m *Model) Deregistration(bytes int) float64 { return m.deregistration(float64(bytes)) }

func (m *Model) registration(bytes float64) float64 {
	return m.register + times(furtherPages(bytes), m.registerPage)
}

func (m *Model) deregistration(bytes float64) float64 {
	return m.deregister + times(furtherPages(bytes), m.deregisterPage)
}

// furtherPages returns the number of pages beyond the first.
func furtherPages(bytes float64) float64 { return max(math.Ceil(bytes/page)-1, 0) }

// First returns the length in bytes of the first piece of a Superpipeline's put, or of the last piece of its get.
// [Model.Growth] is the ratio of the next piece to it. With the growth q and the number of pieces of paper C (equations
// 5 and 7), an operation of L bytes takes, beside the wire,
//
//	C0/Bcopy + g log_q(1 + L(q-1)/C0)
//
// This is least where C0 (C0 + L(q-1)) = L(q-1) g Bcopy/ln q; for a long operation, where C0 = g Bcopy/ln q. The gap g
// is the larger of the card's gap and the processor's time beside copying. Where the wire is not, or hardly, slower
// than copying, pieces have one length.
func (m *Model) First(bytes int) float64 {
	if !m.known {
		return usualFirst
	}
	if m.growth <= flat {
		return m.even(float64(bytes)).first
	}
	return min(max(firstOf(float64(bytes), m.growth, m.knee), shortest), float64(m.longest()))
}

// firstOf returns the length of the first piece of an operation. knee is that length for a very long operation.
func firstOf(bytes, growth, knee float64) float64 {
	extra := times(bytes, growth-1)
	if extra <= 0 {
		return knee
	}
	product := times(extra, knee)
	return 2 * product / (extra + math.Sqrt(times(extra, extra)+times(4, product)))
}

// Growth returns the ratio of successive pieces of a Superpipeline (paper C, equation 5).
func (m *Model) Growth() float64 {
	if m.growth <= flat {
		return 1
	}
	return m.growth
}

// Piece returns the length of CachingPipeline's pieces in bytes, which is also the alignment of their ends. It is a
// power of two and the same for all operations, so that overlapping buffers share pieces. Within 16 MiB it is so long
// that a registration hides behind the previous piece on the wire.
func (m *Model) Piece() int { return m.piece }

// Depth returns the maximum number of outstanding registered pieces of Pipeline. It is two if a piece can be so long
// that the previous piece on the wire hides one deregistration, the next registration and the completion between them.
// It is three otherwise. CachingPipeline deregisters no pieces and has no such bound.
func (m *Model) Depth() int { return m.depth }

// longest returns the length of the longest copied piece.
func (m *Model) longest() int { return m.stage &^ (m.line - 1) }

// A shape is the lengths of the copied pieces, in the order of a put: they grow from first by the factor growth, and
// are longest after that. They add up to the operation.
type shape struct {
	first, growth, longest float64
	growing, flat          int
}

// count returns the number of pieces.
func (s *shape) count() int { return s.growing + s.flat }

// last returns the length of the last growing piece.
func (s *shape) last() float64 {
	last := s.first
	for range s.growing - 1 {
		last = times(last, s.growth)
	}
	return last
}

// equal returns a shape of count pieces of one length.
func equal(bytes, count float64) shape {
	return shape{first: bytes / count, growth: 1, longest: bytes / count, flat: whole(count)}
}

// whole returns a count as an int, limited so that it fits.
func whole(count float64) int { return int(min(count, math.MaxInt/2)) }

// copied returns the shape of the copied pieces of an operation.
func (m *Model) copied(p Protocol, bytes float64) shape {
	switch {
	case bytes <= 0:
		return shape{}
	case p == Copy || p == CopyPipeline && !m.known:
		return equal(bytes, math.Ceil(bytes/float64(m.longest())))
	case p == CopyPipeline || m.growth <= flat:
		return m.even(bytes)
	}
	return m.super(bytes)
}

// even returns the shape of pieces of one length, by the model: the first piece (of a get: the last) is copied while
// the wire is idle, and each piece takes a gap. This is the origin's half of paper C, equations 1 to 3: C = sqrt(L g
// Bcopy). Where copying is slower than the wire, the last piece's time on the wire counts instead, and the processor's
// time beside copying replaces the gap.
func (m *Model) even(bytes float64) shape {
	seen, gap := m.copying, m.gap
	processor := m.post + m.copy
	if m.growth <= 1 {
		seen, gap = m.wire, processor
	}
	fewest := math.Ceil(bytes / float64(m.longest()))
	most := max(math.Floor(bytes/shortest), fewest)
	// n pieces take seen*bytes/n + gap*n, so that one more pays where n(n+1) gap < seen*bytes.
	count := most
	if gap > 0 {
		count = max(math.Floor(math.Sqrt(times(seen, bytes)/gap)), 1)
		if times(times(count, count+1), gap) < times(seen, bytes) {
			count++
		}
	}
	if m.growth > 1 && processor > gap {
		// The processor must keep up with the wire.
		count = min(count, math.Floor(times(bytes, m.wire-m.copying)/(processor-gap)))
	}
	return equal(bytes, max(min(count, most), fewest))
}

// super returns the shape of growing pieces. They are scaled to add up to the operation, which leaves no short piece at
// the end. One piece fewer, with all pieces longer, is used where the gap that it saves exceeds the longer first copy.
func (m *Model) super(bytes float64) shape {
	s := shape{first: m.First(int(bytes)), growth: m.growth, longest: float64(m.longest())}
	s.first = min(s.first, s.longest)
	total, next := 0.0, s.first
	for total < bytes && next < s.longest {
		total += next
		next = times(next, s.growth)
		s.growing++
	}
	if total < bytes {
		count := math.Ceil((bytes - total) / s.longest)
		total += times(count, s.longest)
		s.flat = whole(count)
	} else if s.growing > 1 {
		last := next / s.growth
		fewer := total - last
		longer := times(s.first, bytes/fewer-bytes/total)
		if last/s.growth*(bytes/fewer) <= s.longest && times(longer, m.copying) < max(m.gap, m.post+m.copy) {
			total = fewer
			s.growing--
		}
	}
	scale := bytes / total
	s.first = times(s.first, scale)
	s.longest = min(times(s.longest, scale), s.longest)
	return s
}

// heading returns the shape of the copied head of Pipeline. The head of a get is copied after all else, so a short
// piece saves nothing.
func (m *Model) heading(bytes float64, write bool) shape {
	if write {
		return m.super(bytes)
	}
	return equal(bytes, math.Ceil(bytes/float64(m.longest())))
}

// registered returns how many bytes of an operation are registered, and the maximum length of the pieces.
func (m *Model) registered(p Protocol, bytes int) (registered, piece int) {
	switch p {
	case Register, Cache:
		return bytes, bytes
	case CachingPipeline:
		piece = m.piece
	case Pipeline:
		piece = m.best(float64(bytes))
	default:
		return 0, 0
	}
	head := m.head(float64(piece))
	if head > 0 && bytes-head < piece {
		return 0, 0
	}
	registered = bytes - head
	if p == Pipeline {
		// Use the largest number of pieces of at least this length, or more if the maximum length demands it.
		const most = longestPiece - page
		count := max(registered/piece, (registered-1)/most+1, 1)
		piece = pages((registered-1)/count + 1)
	}
	return registered, piece
}

// pages rounds a length up to whole pages.
func pages(bytes int) int { return (bytes + page - 1) &^ (page - 1) }

// best returns the length of Pipeline's registered pieces, in whole pages. Let R and r be the times of a registration
// and its end, fixed and per byte. Pieces P that are long enough to hide behind the wire take r P + (L/P) g beside the
// wire; shorter ones take (L/P) R + P/Bnet beside r L.
func (m *Model) best(bytes float64) int {
	if m.wire == 0 {
		return usualPiece
	}
	piece := math.Sqrt(times(bytes, m.registering+m.post) / m.wire)
	if piece >= m.hide {
		piece = bytes
		if m.registeringPage > 0 {
			piece = max(m.hide, math.Sqrt(times(bytes, m.gap)/(m.registeringPage/page)))
		}
	}
	piece = min(max(piece, shortestPiece), longestPiece-page)
	return pages(int(math.Ceil(piece)))
}

// head returns the number of bytes to copy so that their time on the wire hides the registration of the first piece. It
// returns 0 where that saves nothing: where copying takes longer than the wire, or the head's first copy and gaps take
// as long as the registration.
func (m *Model) head(piece float64) int {
	if !m.known || m.growth <= flat {
		return 0
	}
	register := m.registration(piece)
	bytes := min(register/(m.wire-m.copying), longestPiece)
	s := m.super(max(bytes, 1))
	seen := m.copy + times(s.first, m.copying) + times(float64(s.count()), max(m.gap, m.post+m.copy))
	if seen >= register {
		return 0
	}
	return int(bytes)
}

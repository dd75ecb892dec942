package transfer

import (
	"math"
	"math/bits"
	"time"

	"github.com/onesided/rma/verbs"
)

const (
	// page is what a card maps at once, in bytes.
	page = 4096
	// shortest is the length of the shortest copied piece that is worth cutting, in bytes: the
	// least packet of InfiniBand.
	shortest = 256
	// line is what pieces that are copied begin with a multiple of, counted from the first.
	line = 64
	// flat is the growth of pieces below which they may as well have one length.
	flat = 1.05
	// usualFirst and usualGrowth are what the authors of paper C found almost as good as the
	// best (section 4, Discussion), for a card of which nothing is known.
	usualFirst, usualGrowth = 12 << 10, 1.5
	// shortestPiece, usualPiece and longestPiece are of registered pieces.
	shortestPiece, usualPiece, longestPiece = 64 << 10, 1 << 20, 16 << 20
)

// A Model predicts how long things take on a card, from what its operations cost. Times are in
// nanoseconds, and per byte.
type Model struct {
	// latency and readLatency are without post, which is the processor's.
	post, gap, latency, readLatency float64
	// serve is what a message takes the processor of each side.
	serve float64
	// wire and copying are for each byte, copy for each copy beside.
	wire, copying, copy          float64
	register, registerPage       float64
	deregister, deregisterPage   float64
	registering, registeringPage float64 // both of a registration and its end
	stage, line                  int

	// known tells that it is known what copies and the wire take for a byte.
	known bool
	// growth is q of paper C, at most flat where pieces of one length are better. knee is the
	// length of the first piece of what is very long.
	growth, knee float64
	// hide is the length of registered pieces from which on the processor hides behind the wire.
	hide         float64
	piece, depth int
}

// NewModel is the model of a card that costs so much. stage is the longest piece of registered
// memory that is to be had, in bytes; a stage below 1 is taken for 1.
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
	// Pieces that are kept do not wait for those before to end.
	if hide := m.hiding(m.register, m.registerPage); hide < longestPiece {
		m.piece = max(1<<bits.Len(uint(hide)), shortestPiece)
	}
	return m
}

// hiding is how long pieces must be to take no longer to register than on the wire, where that
// takes so long for a page, and for each further one; infinite if none are.
func (m *Model) hiding(register, furtherPage float64) float64 {
	per := float64(furtherPage / page)
	if m.wire <= per {
		return math.Inf(1)
	}
	return max(register+m.post-m.gap, 0) / (m.wire - per)
}

func nanoseconds(d time.Duration) float64 { return max(float64(d), 0) }

// perByte is what a byte takes at a rate, 0 if that is not known. Rates that no card has, below 1
// and above 10^18 bytes a second, are taken for these.
func perByte(rate float64) float64 {
	if !(rate > 0) {
		return 0
	}
	return float64(time.Second) / min(max(rate, 1), 1e18)
}

// times is a product that is rounded before it is added to anything, so that all processors decide
// alike.
func times(a, b float64) float64 { return float64(a * b) }

// Direct is what a put takes of memory that the card knows, and DirectRead a get.
func (m *Model) Direct(bytes int) float64 {
	return m.post + m.latency + times(float64(bytes), m.wire)
}

// DirectRead is Direct of a get.
func (m *Model) DirectRead(bytes int) float64 {
	return m.post + m.readLatency + times(float64(bytes), m.wire)
}

// Registration is what it takes to register so many bytes that begin with a page, and
// Deregistration to end that.
func (m *Model) Registration(bytes int) float64 { return m.registration(float64(bytes)) }

// Deregistration is what it takes to end a Registration.
func (m *Model) Deregistration(bytes int) float64 { return m.deregistration(float64(bytes)) }

func (m *Model) registration(bytes float64) float64 {
	return m.register + times(furtherPages(bytes), m.registerPage)
}

func (m *Model) deregistration(bytes float64) float64 {
	return m.deregister + times(furtherPages(bytes), m.deregisterPage)
}

// furtherPages is how many pages so many bytes have beyond the first.
func furtherPages(bytes float64) float64 { return max(math.Ceil(bytes/page)-1, 0) }

// First is the length of the first piece of a Superpipeline's put, and the last of a get, in
// bytes, and Growth how many times as long the next one is. With the growth q and the number of
// pieces of paper C (equations 5 and 7), what is seen of an operation of L bytes beside the wire is
//
//	C0/Bcopy + g log_q(1 + L(q-1)/C0)
//
// which is the least where C0 (C0 + L(q-1)) = L(q-1) g Bcopy/ln q: for a long operation where
// C0 = g Bcopy/ln q. The gap g counts as long as the processor's time beside copying, if that is
// longer. Where the wire is not slower than copying, or hardly so, pieces have one length.
func (m *Model) First(bytes int) float64 {
	if !m.known {
		return usualFirst
	}
	if m.growth <= flat {
		return m.even(float64(bytes)).first
	}
	return min(max(firstOf(float64(bytes), m.growth, m.knee), shortest), float64(m.longest()))
}

// firstOf is the length of the first piece of an operation, where that of what is very long is knee.
func firstOf(bytes, growth, knee float64) float64 {
	extra := times(bytes, growth-1)
	if extra <= 0 {
		return knee
	}
	product := times(extra, knee)
	return 2 * product / (extra + math.Sqrt(times(extra, extra)+times(4, product)))
}

// Growth is that of a Superpipeline's pieces (paper C, equation 5).
func (m *Model) Growth() float64 {
	if m.growth <= flat {
		return 1
	}
	return m.growth
}

// Piece is how long the pieces of CachingPipeline are, in bytes, and what their ends are multiples
// of. It is a power of two, the same for all operations, so that buffers that overlap share pieces,
// and so long, within 16 MB, that a registration hides behind the piece before on the wire.
func (m *Model) Piece() int { return m.piece }

// Depth is how many registered pieces of Pipeline are outstanding at most: two where a piece can
// be so long that the end of one registration, the next one and the news between them take no
// longer than the piece before on the wire, else three. CachingPipeline, which ends none, has no
// such bound.
func (m *Model) Depth() int { return m.depth }

// longest is the length of the longest copied piece.
func (m *Model) longest() int { return m.stage &^ (m.line - 1) }

// A shape is what lengths copied pieces have, in the order of a put: they grow by a factor from
// the first, and are the longest after that. It adds up to the operation.
type shape struct {
	first, growth, longest float64
	growing, flat          int
}

// count is how many pieces there are.
func (s *shape) count() int { return s.growing + s.flat }

// last is the length of the last piece that grows.
func (s *shape) last() float64 {
	last := s.first
	for range s.growing - 1 {
		last = times(last, s.growth)
	}
	return last
}

// equal is a shape of so many pieces of one length.
func equal(bytes, count float64) shape {
	return shape{first: bytes / count, growth: 1, longest: bytes / count, flat: whole(count)}
}

// whole is a count that is not so high that it does not fit an int.
func whole(count float64) int { return int(min(count, math.MaxInt/2)) }

// copied is the shape of the copied pieces of an operation.
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

// even is the shape of pieces of one length, by the model: the first (a get's last) is copied while
// the wire has nothing to do, and each takes a gap. This is the origin's half of paper C, equations
// 1 to 3: C = sqrt(L g Bcopy). Where copying is slower than the wire the last piece's time on the
// wire is what is seen, and the processor's time beside copying takes the gap's place.
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
		// The processor must not fall behind the wire.
		count = min(count, math.Floor(times(bytes, m.wire-m.copying)/(processor-gap)))
	}
	return equal(bytes, max(min(count, most), fewest))
}

// super is the shape of pieces that grow. They are scaled so that they add up, which leaves no short
// one at the end. One piece less, and all of them longer, is taken where that saves more by a gap
// than the first copy is longer.
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

// heading is the shape of the copied head of Pipeline. That of a get is copied behind all else, so
// that a short piece saves nothing.
func (m *Model) heading(bytes float64, write bool) shape {
	if write {
		return m.super(bytes)
	}
	return equal(bytes, math.Ceil(bytes/float64(m.longest())))
}

// registered is how many of an operation's bytes are registered, and how long the pieces are, at most.
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
		// As many pieces as are at least so long, or as have to be.
		const most = longestPiece - page
		count := max(registered/piece, (registered-1)/most+1, 1)
		piece = pages((registered-1)/count + 1)
	}
	return registered, piece
}

// pages is a length in whole pages, not below one of so many bytes.
func pages(bytes int) int { return (bytes + page - 1) &^ (page - 1) }

// best is the length of the registered pieces of Pipeline, in whole pages. With R and r for each
// byte for a registration and its end, and pieces so long that they hide behind the wire, it takes
// r P + (L/P) g beside the wire; with shorter ones (L/P) R + P/Bnet beside r L.
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

// head is how many bytes are copied so that the registration of the first piece hides behind their
// time on the wire, 0 where that saves nothing: where copying takes the processor longer than the
// wire, or the head's own first copy and gaps take what it saves.
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

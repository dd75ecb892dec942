package sim

import "github.com/onesided/rma/verbs"

// Copied charges the calling task for a copy that it has made itself.
func (d *Device) Copied(n int) {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	d.charge(Copied, d.sim.profile.copying(n), n)
}

// A cursor is a position in a list of segments.
type cursor struct {
	segments []verbs.Segment
	offset   int
}

// at returns the cursor at an offset.
func at(segments []verbs.Segment, offset int) cursor {
	for len(segments) > 0 && offset >= len(segments[0].Memory) {
		offset -= len(segments[0].Memory)
		segments = segments[1:]
	}
	return cursor{segments, offset}
}

// rest returns the rest of the segment at the cursor.
func (c *cursor) rest() []byte { return c.segments[0].Memory[c.offset:] }

func (c *cursor) advance(n int) { *c = at(c.segments, c.offset+n) }

// gather fills into from segments, from an offset on.
func gather(into []byte, segments []verbs.Segment, offset int) {
	for from := at(segments, offset); len(into) > 0; {
		n := copy(into, from.rest())
		into = into[n:]
		from.advance(n)
	}
}

// scatter fills segments, from an offset on.
func scatter(segments []verbs.Segment, offset int, from []byte) {
	for into := at(segments, offset); len(from) > 0; {
		n := copy(into.rest(), from)
		from = from[n:]
		into.advance(n)
	}
}

// transfer copies n bytes at an offset from segments to others.
func transfer(to, from []verbs.Segment, offset, n int) {
	for source := at(from, offset); n > 0; {
		piece := source.rest()
		piece = piece[:min(n, len(piece))]
		scatter(to, offset, piece)
		offset += len(piece)
		n -= len(piece)
		source.advance(len(piece))
	}
}

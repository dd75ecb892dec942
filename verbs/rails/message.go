package rails

import (
	"encoding/binary"

	"github.com/onesided/rma/internal/errtext"
)

// A message of the package goes over rail 1 and begins with 8 bytes, little-endian: its kind, the number of places that
// follow, two bytes of zero, and the key of a region on rail 0. Then come the address and the length of the requested
// range (request) or of the region (response). A response that knows the region then has a place for each rail but the
// first:
//
//	request    key, address, length: requests the keys of the region that has that range
//	response   key, address, length, places; without places: there is no such region
//	forget     key: the region has ended
//	forgotten  key
type message struct {
	kind            messageKind
	key             uint32
	address, length uint64
	// places are the places of the region on the rails after the first: count of them.
	count  int
	places [maxRails - 1]place
}

// A place is where a region is on a rail.
type place struct {
	address uint64
	key     uint32
}

type messageKind uint8

const (
	request messageKind = 1 + iota
	response
	forget
	forgotten
)

const (
	shortMessage = 8
	longMessage  = shortMessage + 16
	placeBytes   = 12
	// messageBytes is the length of the longest message.
	messageBytes = longMessage + (maxRails-1)*placeBytes
)

func (m *message) bytes() int {
	switch m.kind {
	case request:
		return longMessage
	case response:
		return longMessage + m.count*placeBytes
	}
	return shortMessage
}

// encode writes a message into b, and returns its length.
func (m *message) encode(b []byte) int {
	n := m.bytes()
	clear(b[:shortMessage])
	b[0], b[1] = byte(m.kind), byte(m.count)
	binary.LittleEndian.PutUint32(b[4:], m.key)
	if n == shortMessage {
		return n
	}
	binary.LittleEndian.PutUint64(b[8:], m.address)
	binary.LittleEndian.PutUint64(b[16:], m.length)
	at := b[longMessage:n]
	for _, p := range m.places[:m.count] {
		binary.LittleEndian.PutUint64(at, p.address)
		binary.LittleEndian.PutUint32(at[8:], p.key)
		at = at[placeBytes:]
	}
	return n
}

// decode reads a message of a peer with a number of rails.
func (m *message) decode(b []byte, rails int) error {
	*m = message{}
	if len(b) < shortMessage {
		return protocolError("a message of %s; the shortest has %d", errtext.Count(len(b), "byte"), shortMessage)
	}
	m.kind, m.count, m.key = messageKind(b[0]), int(b[1]), binary.LittleEndian.Uint32(b[4:])
	switch {
	case m.kind < request || m.kind > forgotten:
		return protocolError("a message of kind %d; allowed are %d to %d", m.kind, request, forgotten)
	case m.count != 0 && (m.kind != response || m.count != rails-1):
		return protocolError("a message of kind %d with %d places; allowed are none, or in a response %d", m.kind, m.count, rails-1)
	case len(b) != m.bytes():
		return protocolError("a message of kind %d with %d places has %s; it has to have %d", m.kind, m.count, errtext.Count(len(b), "byte"), m.bytes())
	case b[2] != 0 || b[3] != 0:
		return protocolError("a message whose third and fourth byte are %#x and %#x; they have to be zero", b[2], b[3])
	}
	if len(b) == shortMessage {
		return nil
	}
	m.address, m.length = binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	if m.length > 0 && m.address+m.length-1 < m.address {
		return protocolError("a message about %s at %#x, beyond the last address", errtext.Count(m.length, "byte"), m.address)
	}
	at := b[longMessage:]
	for i := range m.count {
		m.places[i] = place{binary.LittleEndian.Uint64(at), binary.LittleEndian.Uint32(at[8:])}
		at = at[placeBytes:]
	}
	return nil
}

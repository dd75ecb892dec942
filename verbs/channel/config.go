package channel

import (
	"encoding/binary"
	"fmt"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A Config is the shape of a ring. Its owner, the receiver, chooses it and sends it to the sender.
type Config struct {
	// Buffers is the number of buffers of the ring, BufferBytes the length of each. A message's head and tail take
	// overhead bytes of it. Buffers of whole cache lines, 64 bytes, share none.
	Buffers, BufferBytes int
	// MaxMessage is the maximum length of a payload, in bytes. A message that is longer than a buffer takes several.
	MaxMessage int
}

// DefaultConfig returns a shape that takes 10.25 KiB of either side per direction. The paper sends payloads of up to 2
// KiB eagerly (6.2); this shape has room for 2 KiB with a header of 256 bytes.
func DefaultConfig() Config { return Config{Buffers: 32, BufferBytes: 256, MaxMessage: 2304} }

const (
	wordBytes = 8
	// headBytes is the length of the head word and the stamp, after which the payload begins.
	headBytes = 2 * wordBytes
	// overhead is the length of a message beside its payload: headBytes and the tail word.
	overhead = headBytes + wordBytes
	// grain is the alignment of a buffer's length.
	grain = 32
	// mostBuffers and mostRingBytes bound what a peer may offer.
	mostBuffers   = 1 << 14
	mostRingBytes = 1 << 22
)

// Check returns the error of an invalid shape.
func (c *Config) Check() error {
	switch {
	case c.Buffers < 2 || c.Buffers > mostBuffers:
		return fmt.Errorf("channel: %s; allowed are 2 to %d", errtext.Count(c.Buffers, "buffer"), mostBuffers)
	case c.BufferBytes < grain || c.BufferBytes%grain != 0 || c.BufferBytes > mostRingBytes/c.Buffers:
		return fmt.Errorf("channel: buffers of %s; allowed are multiples of %d to %d with %s", errtext.Count(c.BufferBytes, "byte"), grain, mostRingBytes/c.Buffers, errtext.Count(c.Buffers, "buffer"))
	case c.MaxMessage < 1 || c.MaxMessage > c.Buffers*c.BufferBytes-overhead:
		return fmt.Errorf("channel: messages of %s; allowed are 1 to %d with %s of %d", errtext.Count(c.MaxMessage, "byte"), c.Buffers*c.BufferBytes-overhead, errtext.Count(c.Buffers, "buffer"), c.BufferBytes)
	}
	return nil
}

// Bytes returns the memory of a ring on either side. The longest message may begin in the last buffer; there is room
// for its rest after the ring.
func (c *Config) Bytes() int { return (c.Buffers + c.span(c.MaxMessage) - 1) * c.BufferBytes }

// span returns the number of buffers of a message with a payload of this length.
func (c *Config) span(payload int) int {
	return (overhead + padded(payload) + c.BufferBytes - 1) / c.BufferBytes
}

// taken returns how many buffers of the ring a message of a span that begins in buffer takes, and in which buffer the
// next message begins.
func (c *Config) taken(buffer, span int) (taken, next int) {
	if left := c.Buffers - buffer; span >= left {
		return left, 0
	}
	return span, buffer + span
}

// padded returns the length of a payload in whole words.
func padded(payload int) int { return (payload + wordBytes - 1) &^ (wordBytes - 1) }

// An Offer tells the peer of a ring.
type Offer struct {
	Config
	// Address and RKey are those of the memory region, which has Config.Bytes.
	Address uint64
	RKey    uint32
}

// OfferBytes is the length of an encoded Offer: Address in 64 bits, and RKey, Buffers, BufferBytes and MaxMessage in 32
// bits each, little-endian.
const OfferBytes = 24

// Encode writes the offer to into.
func (o *Offer) Encode(into []byte) {
	_ = into[OfferBytes-1]
	binary.LittleEndian.PutUint64(into, o.Address)
	binary.LittleEndian.PutUint32(into[8:], o.RKey)
	binary.LittleEndian.PutUint32(into[12:], uint32(o.Buffers))
	binary.LittleEndian.PutUint32(into[16:], uint32(o.BufferBytes))
	binary.LittleEndian.PutUint32(into[20:], uint32(o.MaxMessage))
}

// Decode reads and checks what the peer has encoded.
func (o *Offer) Decode(from []byte) error {
	if len(from) != OfferBytes {
		return &ProtocolError{"the length of an offer", uint64(len(from)), OfferBytes, OfferBytes}
	}
	decoded := Offer{
		Address: binary.LittleEndian.Uint64(from),
		RKey:    binary.LittleEndian.Uint32(from[8:]),
		Config: Config{
			Buffers:     int(binary.LittleEndian.Uint32(from[12:])),
			BufferBytes: int(binary.LittleEndian.Uint32(from[16:])),
			MaxMessage:  int(binary.LittleEndian.Uint32(from[20:])),
		},
	}
	if decoded.Address%wordBytes != 0 {
		return &ProtocolError{"the address of an offer modulo 8", decoded.Address % wordBytes, 0, 0}
	}
	if err := decoded.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	*o = decoded
	return nil
}

// OfferOf returns the offer of a ring in a region.
func OfferOf(config Config, region verbs.RemoteRegion) Offer {
	return Offer{Config: config, Address: region.Address, RKey: region.RKey}
}

package channel

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A Channel is one end of a connection. It holds the state to write messages into the peer's ring, and to take messages
// from this side's ring. It calls no device.
//
// Its sender half (Lend, Place, Seal, SealGathered, StampEager, NeedsStamp, Mark, Completed) is for one goroutine at a
// time. So is its receiver half (Own, Poll, Free, TakeEager, TakeStamps, SetPolled, Polled, Draining). Both halves may
// be used at once. A Channel without rings numbers eager messages, and takes no memory beside itself. Only an End gives
// its channel a pipe.
type Channel struct {
	// ID is for the user. The package does not read it.
	ID int

	out sender
	in  receiver

	// buffers is the number of buffers of this side's ring, for the sender half.
	buffers atomic.Int32
	// used is the number of buffers of the peer's ring ever used. The sender half writes it; the receiver half checks
	// the peer's credits against it.
	used atomic.Uint32
	// peerStamp is the last stamp of the peer, with the number of requests to leave its ring in place of a message
	// number. owed is what the peer has to know. The receiver half writes both.
	peerStamp, owed atomic.Uint64

	// traffic is for the set.
	traffic traffic
}

// Traits are the properties of the device under a channel.
type Traits struct {
	// Ordered reports whether the bytes of one write are placed in ascending order.
	Ordered bool
	// Resends reports whether the card may read the source of a write until the write has completed.
	Resends bool
}

// TraitsOf returns the traits of a device with these attributes.
func TraitsOf(a *verbs.Attributes) Traits {
	return Traits{Ordered: a.OrderedWrites, Resends: a.Resends}
}

// New returns a channel without rings, whose messages are eager messages.
func New(traits Traits) *Channel { return &Channel{out: sender{traits: traits}} }

// checkMemory returns an error if memory does not fit a ring of config.
func checkMemory(config *Config, memory []byte) error {
	if err := config.Check(); err != nil {
		return err
	}
	if len(memory) != config.Bytes() || bounds.Address(memory)%wordBytes != 0 {
		return fmt.Errorf("channel: %s at %#x for a ring; it takes %d at a multiple of %d", errtext.Count(len(memory), "byte"), bounds.Address(memory), config.Bytes(), wordBytes)
	}
	return nil
}

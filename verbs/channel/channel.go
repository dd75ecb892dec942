package channel

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A Channel is one end of a connection. It holds the state that is needed to write messages into the
// peer's ring, and to take those that the peer writes into this side's. It calls no device.
//
// Its sender half (Lend, Place, Seal, SealGathered, StampLetter, NeedsTelling, Mark,
// Completed, LendPipe, SendOnPipe) is for one goroutine at a time, and so is its receiver half (Own,
// Poll, Free, Letter, SetPolled, Polled, Draining, OwnPipe, PollPipe, FreeOfPipe): both may be used at once. A Channel without rings
// numbers letters, and takes no memory beside itself.
type Channel struct {
	// ID is for the user. The package does not read it.
	ID int

	out sender
	in  receiver

	// buffers are those of this side's ring, for the sender half.
	buffers atomic.Int32
	// used is how many buffers of the peer's ring were used in all. It is the sender half's;
	// the other checks by it what the peer credits.
	used atomic.Uint32
	// heard is what the peer has told last, with how often it has told to leave its ring in
	// the place of a number; tells is what it is to be told. They are the receiver half's.
	heard, tells atomic.Uint64

	// traffic is for the set.
	traffic traffic
}

// Traits are those of the device under a channel.
type Traits struct {
	// Ordered: the bytes of one write are placed in rising order.
	Ordered bool
	// Resends: the card may read the source of a write until the write has completed.
	Resends bool
}

// TraitsOf gives those of a device.
func TraitsOf(a *verbs.Attributes) Traits {
	return Traits{Ordered: a.OrderedWrites, Resends: a.Resends}
}

// New makes a channel without rings, whose messages are letters.
func New(traits Traits) *Channel { return &Channel{out: sender{traits: traits}} }

// checkMemory says what is wrong with the memory of a ring.
func checkMemory(config *Config, memory []byte) error {
	if err := config.Check(); err != nil {
		return err
	}
	if len(memory) != config.Bytes() || bounds.Address(memory)%wordBytes != 0 {
		return fmt.Errorf("channel: %s at %#x for a ring; it takes %d at a multiple of %d", errtext.Count(len(memory), "byte"), bounds.Address(memory), config.Bytes(), wordBytes)
	}
	return nil
}

package transfer

import (
	"fmt"
	"strings"
)

// A Protocol is how the bytes of one operation get between the origin's memory and the card.
type Protocol uint8

const (
	// Copy goes through registered memory, as one piece; in as few as it has room for, where
	// the operation is longer than the stage.
	Copy Protocol = iota
	// CopyPipeline goes through registered memory in pieces of one length, which is the best by
	// the model (paper C, section 3).
	CopyPipeline
	// Superpipeline goes through registered memory in pieces that grow geometrically (a put) or
	// shrink (a get) (paper C, section 4).
	Superpipeline
	// Register registers the buffer as a whole, for this once.
	Register
	// Pipeline registers the buffer in pieces, each for this once, the next while one is on the
	// wire. A head is copied, so that the first registration hides (paper E, section 4).
	Pipeline
	// CachingPipeline is the same with pieces that are aligned to their length and kept (paper
	// E, section 5.2).
	CachingPipeline
	// Cache registers the buffer as a whole, and keeps it (paper E, section 5.1).
	Cache

	// Protocols is how many there are.
	Protocols
)

var names = [Protocols]string{"copy", "copy-pipeline", "superpipeline", "register", "pipeline", "caching-pipeline", "cache"}

func (p Protocol) String() string {
	if p < Protocols {
		return names[p]
	}
	return fmt.Sprintf("protocol %d", uint8(p))
}

// Parse gives the protocol of a name.
func Parse(name string) (Protocol, error) {
	for p, other := range names {
		if name == other {
			return Protocol(p), nil
		}
	}
	return 0, fmt.Errorf("transfer: no protocol %q; allowed are %s", name, strings.Join(names[:], ", "))
}

// A Set is a set of protocols.
type Set uint8

// All protocols.
const All Set = 1<<Protocols - 1

// Of is the set of some protocols.
func Of(some ...Protocol) Set {
	var s Set
	for _, p := range some {
		s |= 1 << p
	}
	return s & All
}

// Has tells whether a protocol is in the set.
func (s Set) Has(p Protocol) bool { return p < Protocols && s&(1<<p) != 0 }

// String has the names, separated by commas.
func (s Set) String() string {
	var in []string
	for p := range Protocols {
		if s.Has(p) {
			in = append(in, p.String())
		}
	}
	return strings.Join(in, ",")
}

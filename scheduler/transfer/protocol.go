package transfer

import (
	"fmt"
	"strings"
)

// A Protocol is a way to move the bytes of one operation between the origin's memory and the card.
type Protocol uint8

const (
	// Copy copies through registered memory in one piece, or in as few as possible if the operation is longer than the
	// stage.
	Copy Protocol = iota
	// CopyPipeline copies through registered memory in pieces of one length, the best by the model (paper C, section
	// 3).
	CopyPipeline
	// Superpipeline copies through registered memory in pieces that grow geometrically (a put) or shrink (a get) (paper
	// C, section 4).
	Superpipeline
	// Register registers the buffer as a whole for one use.
	Register
	// Pipeline registers the buffer in pieces, each for one use, the next while one is on the wire. It copies a head,
	// which hides the first registration (paper E, section 4).
	Pipeline
	// CachingPipeline is Pipeline with pieces that are aligned to their length and stay registered (paper E, section
	// 5.2).
	CachingPipeline
	// Cache registers the buffer as a whole and keeps it registered (paper E, section 5.1).
	Cache

	// Protocols is the number of protocols.
	Protocols
)

var names = [Protocols]string{"copy", "copy-pipeline", "superpipeline", "register", "pipeline", "caching-pipeline", "cache"}

func (p Protocol) String() string {
	if p < Protocols {
		return names[p]
	}
	return fmt.Sprintf("protocol %d", uint8(p))
}

// Parse returns the protocol with a name. It returns an error that lists the names if there is none.
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

// All is the set of all protocols.
const All Set = 1<<Protocols - 1

// Of returns the set of the given protocols.
func Of(some ...Protocol) Set {
	var s Set
	for _, p := range some {
		s |= 1 << p
	}
	return s & All
}

// Has reports whether a protocol is in the set.
func (s Set) Has(p Protocol) bool { return p < Protocols && s&(1<<p) != 0 }

// String returns the names, separated by commas.
func (s Set) String() string {
	var in []string
	for p := range Protocols {
		if s.Has(p) {
			in = append(in, p.String())
		}
	}
	return strings.Join(in, ",")
}

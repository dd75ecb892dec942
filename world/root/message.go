package root

import (
	"encoding/binary"
	"fmt"
	"io"
)

// purpose of the proof: a connection to the root is none between ranks.
const purpose = "rma root 1"

// A claim is what a rank says once it has proved the key: its rank and the size of
// the job as it knows it, both as big-endian 32-bit numbers.
type claim struct{ rank, size uint32 }

const claimSize = 8

func (c claim) encode() []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, c.rank), c.size)
}

func readClaim(r io.Reader) (claim, error) {
	var b [claimSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return claim{}, err
	}
	return claim{rank: binary.BigEndian.Uint32(b[:]), size: binary.BigEndian.Uint32(b[4:])}, nil
}

type outcome byte

const (
	// begin: all are there, the PMI-1 dialogue follows.
	begin outcome = 1 + iota
	// refused: the claim is not granted.
	refused
	// incomplete: the root has given up on those who are missing.
	incomplete
)

// A verdict is the root's answer to a claim: the outcome, and a text of at most
// maxText bytes preceded by its length as a big-endian 16-bit number.
type verdict struct {
	outcome outcome
	text    string
}

const maxText = 1024

func (v verdict) encode() []byte {
	text := v.text[:min(len(v.text), maxText)]
	return append(binary.BigEndian.AppendUint16([]byte{byte(v.outcome)}, uint16(len(text))), text...)
}

func readVerdict(r io.Reader) (verdict, error) {
	var head [3]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return verdict{}, err
	}
	v := verdict{outcome: outcome(head[0])}
	length := binary.BigEndian.Uint16(head[1:])
	if v.outcome < begin || v.outcome > incomplete || length > maxText {
		return verdict{}, fmt.Errorf("%w: outcome %d with a text of %d bytes, allowed are %d to %d with %d", ErrProtocol, v.outcome, length, begin, incomplete, maxText)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return verdict{}, err
	}
	v.text = string(text)
	return v, nil
}

// err is what a verdict means for the rank that gets it.
func (v verdict) err() error {
	switch v.outcome {
	case refused:
		return fmt.Errorf("%w: the root says %q", ErrClaim, v.text)
	case incomplete:
		return fmt.Errorf("%w: the root says %q", ErrIncomplete, v.text)
	}
	return nil
}

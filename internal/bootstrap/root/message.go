package root

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"github.com/onesided/rma/internal/errtext"
)

// purpose is the purpose of the proof: a connection to the root is none between ranks. It changes only when claims or
// verdicts change. So ranks whose versions differ otherwise can compare their terms.
const purpose = "rma root 3"

// A claim is the first message of a rank after the proof. Its fields are
//
//   - the rank and the size of the job, as big-endian 32-bit numbers,
//   - the job that the rank has left, or 0, as a big-endian 64-bit number,
//   - its terms, printable, of at most maxTerms bytes, after their length as a big-endian 16-bit number.
type claim struct {
	rank, size uint32
	after      uint64
	terms      Terms
}

const (
	claimHead = 18
	maxTerms  = 256
)

func (c claim) encode() []byte {
	b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, c.rank), c.size)
	b = binary.BigEndian.AppendUint64(b, c.after)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(c.terms))), c.terms...)
}

func readClaim(r io.Reader) (claim, error) {
	var b [claimHead]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return claim{}, fmt.Errorf("root: awaiting the claim: %w", err)
	}
	c := claim{rank: binary.BigEndian.Uint32(b[:]), size: binary.BigEndian.Uint32(b[4:]), after: binary.BigEndian.Uint64(b[8:])}
	length := binary.BigEndian.Uint16(b[16:])
	if length > maxTerms {
		return claim{}, fmt.Errorf("%w: terms of %s, allowed are %d", ErrProtocol, errtext.Count(length, "byte"), maxTerms)
	}
	terms := make([]byte, length)
	if _, err := io.ReadFull(r, terms); err != nil {
		return claim{}, fmt.Errorf("root: awaiting the claim's terms: %w", err)
	}
	if c.terms = Terms(terms); !printable(string(terms)) {
		return claim{}, fmt.Errorf("%w: terms %q, allowed are printable characters", ErrProtocol, c.terms)
	}
	return c, nil
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

type outcome byte

const (
	// begin: all ranks are present; the PMI-1 dialogue follows.
	begin outcome = 1 + iota
	// rejected: the claim is rejected.
	rejected
	// incomplete: the root has given up waiting for missing ranks.
	incomplete
	// disagreement: the ranks are not of one job, which has ended before it began.
	disagreement
)

// A verdict is the root's response to a claim. Its fields are the outcome, the job that begins or 0, and a text of at
// most maxText bytes after its length. The job is a big-endian 64-bit number, and the length a big-endian 16-bit
// number.
type verdict struct {
	outcome outcome
	job     uint64
	text    string
}

const (
	verdictHead = 11
	maxText     = 1024
)

func (v verdict) encode() []byte {
	text := v.text[:min(len(v.text), maxText)]
	b := binary.BigEndian.AppendUint64([]byte{byte(v.outcome)}, v.job)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(text))), text...)
}

func readVerdict(r io.Reader) (verdict, error) {
	var head [verdictHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return verdict{}, err
	}
	v := verdict{outcome: outcome(head[0]), job: binary.BigEndian.Uint64(head[1:])}
	length := binary.BigEndian.Uint16(head[9:])
	if v.outcome < begin || v.outcome > disagreement || length > maxText {
		return verdict{}, fmt.Errorf("%w: outcome %d with a text of %s, allowed are %d to %d with %d", ErrProtocol, v.outcome, errtext.Count(length, "byte"), begin, disagreement, maxText)
	}
	if (v.outcome == begin) != (v.job != 0) {
		return verdict{}, fmt.Errorf("%w: outcome %d of job %#x, allowed are %d with a job and the others without", ErrProtocol, v.outcome, v.job, begin)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return verdict{}, err
	}
	v.text = string(text)
	return v, nil
}

// err returns the error that a verdict means for the rank.
func (v verdict) err() error {
	text := legible(v.text)
	switch v.outcome {
	case rejected:
		return fmt.Errorf("%w: the root says: %s", ErrClaim, text)
	case incomplete:
		return fmt.Errorf("%w: the root says: %s", ErrIncomplete, text)
	case disagreement:
		return fmt.Errorf("%w: the root says: %s", ErrDisagreement, text)
	}
	return nil
}

package proof_test

import (
	"encoding/hex"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/internal/proof"
)

// script is a peer that sends fixed bytes, whatever it receives.
type script struct {
	in, out []byte
	read    int
}

func (s *script) Read(p []byte) (int, error) {
	if s.read == len(s.in) {
		return 0, io.EOF
	}
	n := copy(p, s.in[s.read:])
	s.read += n
	return n, nil
}

func (s *script) Write(p []byte) (int, error) {
	s.out = append(s.out, p...)
	return len(p), nil
}

// mostAllocated bounds the allocations of a dialogue, whatever the peer sends.
const mostAllocated = 8 << 10

// Bytes that were fixed before the nonces were chosen never prove the key. No more bytes are read or sent than a
// dialogue has.
func FuzzAccept(f *testing.F) {
	f.Fuzz(func(t *testing.T, in []byte) {
		allocs.AtMost(t, mostAllocated, func() { _ = proof.Accept(&script{in: in}, ours, "p") })
		conn := script{in: in}
		require.Error(t, proof.Accept(&conn, ours, "p"))
		require.LessOrEqual(t, conn.read, initiatorSize)
		require.LessOrEqual(t, len(conn.out), acceptorSize)
		if len(in) < helloSize {
			require.Empty(t, conn.out)
		}
	})
}

func FuzzDial(f *testing.F) {
	f.Fuzz(func(t *testing.T, in []byte) {
		allocs.AtMost(t, mostAllocated, func() { _ = proof.Dial(&script{in: in}, ours, "p") })
		conn := script{in: in}
		require.Error(t, proof.Dial(&conn, ours, "p"))
		require.LessOrEqual(t, conn.read, acceptorSize)
		if len(in) < challengeSize {
			require.Len(t, conn.out, helloSize)
		}
	})
}

// A text that ParseKey accepts is one of hexadecimal digits, in either case.
func FuzzParseKey(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		allocs.AtMost(t, 4<<10+len(text), func() { _, _ = proof.ParseKey(text) })
		key, err := proof.ParseKey(text)
		if err != nil {
			require.ErrorIs(t, err, proof.ErrKeyForm)
			return
		}
		require.GreaterOrEqual(t, len(key), proof.MinKey)
		require.LessOrEqual(t, len(key), proof.MaxKey)
		again, err := proof.ParseKey(hex.EncodeToString(key))
		require.NoError(t, err)
		require.Equal(t, key, again)
	})
}

package root

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVerdictOfManyWordsIsCut(t *testing.T) {
	v, err := readVerdict(bytes.NewReader(verdict{refused, strings.Repeat("x", maxText+1)}.encode()))
	require.NoError(t, err)
	require.Len(t, v.text, maxText)
}

func TestTruncatedMessages(t *testing.T) {
	whole := verdict{incomplete, "1, 2"}.encode()
	for n := range whole {
		_, err := readVerdict(bytes.NewReader(whole[:n]))
		require.Error(t, err, "%d bytes", n)
	}
	whole = claim{1, 2}.encode()
	for n := range whole {
		_, err := readClaim(bytes.NewReader(whole[:n]))
		require.Error(t, err, "%d bytes", n)
	}
}

// What is taken for a verdict is one that encode writes, and no byte after it is read.
func FuzzVerdict(f *testing.F) {
	f.Add(verdict{outcome: begin}.encode())
	f.Add(verdict{refused, "rank 1 is taken"}.encode())
	f.Add(verdict{incomplete, strings.Repeat("x", maxText)}.encode())
	f.Add([]byte{byte(refused), 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		v, err := readVerdict(r)
		if err != nil {
			return
		}
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, b, append(v.encode(), rest...))
		require.Equal(t, v.outcome == begin, v.err() == nil)
	})
}

// Whatever a rank claims, it gets a seat only if it is one of those that are awaited.
func FuzzClaim(f *testing.F) {
	f.Add(claim{1, 4}.encode())
	f.Add(claim{0, 4}.encode())
	f.Add(claim{4, 4}.encode())
	f.Add(claim{1 << 31, 1 << 31}.encode())
	h := &host{size: 4, listener: nowhere{}}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := readClaim(bytes.NewReader(b))
		if err != nil {
			require.Less(t, len(b), claimSize)
			return
		}
		awaited := c.size == 4 && c.rank >= 1 && c.rank <= 3
		require.Equal(t, awaited, h.judge(c) == nil)
	})
}

// nowhere is a listener that only has an address.
type nowhere struct{ net.Listener }

func (nowhere) Addr() net.Addr { return &net.TCPAddr{} }

package root

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
)

func TestVerdictOfManyWordsIsCut(t *testing.T) {
	v, err := readVerdict(bytes.NewReader(verdict{rejected, 0, strings.Repeat("x", maxText+1)}.encode()))
	require.NoError(t, err)
	require.Len(t, v.text, maxText)
}

func TestTruncatedMessages(t *testing.T) {
	whole := verdict{incomplete, 0, "1, 2"}.encode()
	for n := range whole {
		_, err := readVerdict(bytes.NewReader(whole[:n]))
		require.Error(t, err, "%d bytes", n)
	}
	whole = claim{1, 2, 3, "has a device"}.encode()
	for n := range whole {
		_, err := readClaim(bytes.NewReader(whole[:n]))
		require.ErrorContains(t, err, "root: awaiting the claim", "%d bytes", n)
	}
}

func TestTermsAreChecked(t *testing.T) {
	for _, terms := range []Terms{"a\nb", "\x00", "λόγος", Terms(strings.Repeat("x", maxTerms+1))} {
		_, err := readClaim(bytes.NewReader(claim{1, 2, 0, terms}.encode()))
		require.ErrorIs(t, err, ErrProtocol, "%q", terms)
	}
}

// A verdict without a valid job number is rejected, because a rank could not distinguish the job from the next one.
func TestJobOfAVerdictIsChecked(t *testing.T) {
	for _, v := range []verdict{{outcome: begin}, {rejected, 1, "rank 1 is taken"}, {incomplete, 1, ""}, {disagreement, 1<<64 - 1, ""}} {
		_, err := readVerdict(bytes.NewReader(v.encode()))
		require.ErrorIs(t, err, ErrProtocol, "%v", v)
	}
}

// A verdict that readVerdict accepts is one that encode writes. No byte after it is read.
func FuzzVerdict(f *testing.F) {
	f.Add(verdict{outcome: begin, job: 1}.encode())
	f.Add(verdict{outcome: begin, job: 1<<64 - 1}.encode())
	f.Add(verdict{outcome: begin}.encode())
	f.Add(verdict{rejected, 0, "rank 1 is taken"}.encode())
	f.Add(verdict{rejected, 1, "rank 1 is taken"}.encode())
	f.Add(verdict{incomplete, 0, strings.Repeat("x", maxText)}.encode())
	f.Add([]byte{byte(rejected), 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		allocs.AtMost(t, 2*maxText+1<<10, func() { _, _ = readVerdict(bytes.NewReader(b)) })
		r := bytes.NewReader(b)
		v, err := readVerdict(r)
		if err != nil {
			return
		}
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, b, append(v.encode(), rest...))
		require.Equal(t, v.outcome == begin, v.err() == nil)
		require.Equal(t, v.outcome == begin, v.job != 0)
	})
}

// A rank gets a seat only if it is one of those that are awaited, whatever it claims.
func FuzzClaim(f *testing.F) {
	f.Add(claim{1, 4, 0, ""}.encode())
	f.Add(claim{0, 4, 0, "has a device"}.encode())
	f.Add(claim{1, 4, 1, "has a device"}.encode())
	f.Add(claim{1, 4, 1<<64 - 1, "has a device"}.encode())
	f.Add(claim{4, 4, 0, ""}.encode())
	f.Add(claim{1 << 31, 1 << 31, 1 << 63, ""}.encode())
	f.Add(claim{2, 4, 0, "has RMA_DEVICE=shm"}.encode())
	f.Add(claim{2, 4, 0, Terms(strings.Repeat("x", maxTerms))}.encode())
	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff})
	f.Add(claim{1, 4, 0, "\n"}.encode())
	h := &host{settings: &Settings{Terms: "has a device"}, size: 4, listener: nowhere{}}
	f.Fuzz(func(t *testing.T, b []byte) {
		allocs.AtMost(t, 2*maxTerms+2<<10, func() { _, _ = readClaim(bytes.NewReader(b)) })
		r := bytes.NewReader(b)
		c, err := readClaim(r)
		if err != nil {
			return
		}
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, b, append(c.encode(), rest...))
		agrees := c.size == 4 && c.terms == "has a device"
		awaited := agrees && c.rank >= 1 && c.rank <= 3
		v := h.judge(c)
		require.Equal(t, awaited, v.outcome == begin)
		require.Equal(t, agrees, v.outcome != disagreement)
	})
}

// nowhere is a listener that only has an address.
type nowhere struct{ net.Listener }

func (nowhere) Addr() net.Addr { return &net.TCPAddr{} }

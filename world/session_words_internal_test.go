package world

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// said is a line on which the other side has said something.
type said struct {
	net.Conn
	*bytes.Reader
}

func (s said) Read(into []byte) (int, error)  { return s.Reader.Read(into) }
func (s said) Write(from []byte) (int, error) { return len(from), nil }

// A server that ends a session says why, at each place where the client listens.
func TestPartingWords(t *testing.T) {
	for _, c := range []struct {
		words []byte
		is    error
		says  string
	}{
		{sentence(parting, ""), ErrLeft, ""},
		{sentence(parting, "the reason\x1b[2J"), ErrEvicted, `the server has ended the session: "the reason\x1b[2J"`},
		{sentence(parting, strings.Repeat("x", longestReason+1)), ErrEvicted, strings.Repeat("x", longestReason)},
		{sentence(crowded, ""), errCrowded, ""},
		{[]byte{parting, 0xff, 0xff}, errContact, "65535 bytes, allowed are 512"},
		{[]byte{parting, 0, 9, 'x'}, io.ErrUnexpectedEOF, ""},
	} {
		conn := said{Reader: bytes.NewReader(c.words)}
		_, err := hearWord(conn)
		require.ErrorIs(t, err, c.is)
		require.ErrorContains(t, err, c.says)
		conn = said{Reader: bytes.NewReader(c.words)}
		_, err = overLine(conn, 1)(t.Context(), "mine")
		require.ErrorIs(t, err, c.is)
		require.ErrorContains(t, err, c.says)
	}
}

// A place in the crowd is the oldest client's for its share of time, and no longer when others come.
func TestJoining(t *testing.T) {
	j := joining{places: make(chan struct{}, 2)}
	first, leave, err := j.enter(t.Context())
	require.NoError(t, err)
	second, leaveSecond, err := j.enter(t.Context())
	require.NoError(t, err)
	entered := make(chan func())
	go func() {
		_, leave, err := j.enter(t.Context())
		if err != nil {
			t.Error(err)
		}
		entered <- leave
	}()
	<-first.Done()
	require.NoError(t, second.Err())
	leave()
	(<-entered)()
	leaveSecond()
	require.Empty(t, j.places)
	require.Empty(t, j.oldest)
}

package proof_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/proof"
)

const (
	helloSize     = 8 + 2 + 32
	challengeSize = helloSize + 32
	initiatorSize = helloSize + 32
	acceptorSize  = challengeSize + 32
)

var (
	ours   = bytes.Repeat([]byte{1}, 32)
	theirs = bytes.Repeat([]byte{2}, 32)
)

// A peer is one end of a connection.
type peer func(conn io.ReadWriter) error

func dial(key []byte, purpose string) peer {
	return func(conn io.ReadWriter) error { return proof.Dial(conn, key, purpose) }
}

func accept(key []byte, purpose string) peer {
	return func(conn io.ReadWriter) error { return proof.Accept(conn, key, purpose) }
}

// meet runs both ends of a connection; an end that returns closes it.
func meet(t *testing.T, near, far peer) (nearErr, farErr error) {
	t.Helper()
	a, b := net.Pipe()
	var ends sync.WaitGroup
	end := func(conn net.Conn, do peer, err *error) {
		ends.Go(func() {
			defer conn.Close()
			if *err = conn.SetDeadline(time.Now().Add(await.Limit)); *err == nil {
				*err = do(conn)
			}
		})
	}
	end(a, near, &nearErr)
	end(b, far, &farErr)
	ends.Wait()
	return nearErr, farErr
}

// tap is a connection whose writes pass through edit. edit receives their offset in the stream, and reports whether the
// stream continues.
type tap struct {
	io.ReadWriter
	written int
	edit    func(at int, p []byte) ([]byte, bool)
}

func (c *tap) Write(p []byte) (int, error) {
	edited, more := c.edit(c.written, bytes.Clone(p))
	c.written += len(p)
	if _, err := c.ReadWriter.Write(edited); err != nil {
		return 0, err
	}
	if !more {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func tapped(do peer, edit func(at int, p []byte) ([]byte, bool)) peer {
	return func(conn io.ReadWriter) error { return do(&tap{ReadWriter: conn, edit: edit}) }
}

// cut ends the stream before byte n.
func cut(n int) func(int, []byte) ([]byte, bool) {
	return func(at int, p []byte) ([]byte, bool) {
		if at+len(p) <= n {
			return p, true
		}
		return p[:n-at], false
	}
}

// flip changes one bit of byte n.
func flip(n int) func(int, []byte) ([]byte, bool) {
	return func(at int, p []byte) ([]byte, bool) {
		if n >= at && n < at+len(p) {
			p[n-at] ^= 1
		}
		return p, true
	}
}

func record(into *bytes.Buffer) func(int, []byte) ([]byte, bool) {
	return func(_ int, p []byte) ([]byte, bool) { into.Write(p); return p, true }
}

// replay sends recorded bytes, whatever it receives, and ends.
func replay(recorded []byte) peer {
	return func(conn io.ReadWriter) error {
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		_, err := conn.Write(recorded)
		return err
	}
}

func TestKeyAndPurposeMustAgree(t *testing.T) {
	for _, c := range []struct {
		name           string
		dial, accept   peer
		dials, accepts error
	}{
		{"same", dial(ours, "a"), accept(ours, "a"), nil, nil},
		{"same without purpose", dial(ours, ""), accept(ours, ""), nil, nil},
		{"shortest key", dial(ours[:16], "a"), accept(ours[:16], "a"), nil, nil},
		{"another key", dial(ours, "a"), accept(theirs, "a"), proof.ErrKey, proof.ErrKey},
		{"another purpose", dial(ours, "a"), accept(ours, "b"), proof.ErrKey, proof.ErrKey},
		{"purpose cut", dial(ours, "ab"), accept(ours, "a"), proof.ErrKey, proof.ErrKey},
		{"key cut", dial(ours, "a"), accept(ours[:31], "a"), proof.ErrKey, proof.ErrKey},
	} {
		t.Run(c.name, func(t *testing.T) {
			dials, accepts := meet(t, c.dial, c.accept)
			require.ErrorIs(t, dials, c.dials)
			require.ErrorIs(t, accepts, c.accepts)
		})
	}
}

func TestTruncatedAtEveryByte(t *testing.T) {
	for n := range initiatorSize {
		_, err := meet(t, tapped(dial(ours, "p"), cut(n)), accept(ours, "p"))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "acceptor, %d bytes", n)
	}
	for n := range acceptorSize {
		err, _ := meet(t, dial(ours, "p"), tapped(accept(ours, "p"), cut(n)))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "initiator, %d bytes", n)
	}
}

// If any byte of the dialogue is changed on its way, neither end accepts the proof.
func TestChangedAtEveryByte(t *testing.T) {
	want := func(n int) error {
		switch {
		case n < 8:
			return proof.ErrProtocol
		case n < 10:
			return proof.ErrVersion
		}
		return proof.ErrKey
	}
	for n := range initiatorSize {
		dials, accepts := meet(t, tapped(dial(ours, "p"), flip(n)), accept(ours, "p"))
		require.ErrorIs(t, accepts, want(n), "acceptor, byte %d", n)
		require.Error(t, dials, "initiator, byte %d", n)
	}
	for n := range acceptorSize {
		dials, accepts := meet(t, dial(ours, "p"), tapped(accept(ours, "p"), flip(n)))
		require.ErrorIs(t, dials, want(n), "initiator, byte %d", n)
		if n < challengeSize {
			require.Error(t, accepts, "acceptor, byte %d", n)
		}
	}
}

func TestReplayedDialogueProvesNothing(t *testing.T) {
	var said, answered bytes.Buffer
	dials, accepts := meet(t, tapped(dial(ours, "p"), record(&said)), tapped(accept(ours, "p"), record(&answered)))
	require.NoError(t, errors.Join(dials, accepts))
	require.Len(t, said.Bytes(), initiatorSize)
	require.Len(t, answered.Bytes(), acceptorSize)

	err, _ := meet(t, accept(ours, "p"), replay(said.Bytes()))
	require.ErrorIs(t, err, proof.ErrKey)
	err, _ = meet(t, dial(ours, "p"), replay(answered.Bytes()))
	require.ErrorIs(t, err, proof.ErrKey)
}

func TestReflectedMessagesProveNothing(t *testing.T) {
	echo := func(conn io.ReadWriter) error {
		_, err := io.Copy(conn, conn)
		return err
	}
	err, _ := meet(t, dial(ours, "p"), echo)
	require.ErrorIs(t, err, proof.ErrProtocol)
	require.ErrorContains(t, err, "own nonce")

	// The acceptor's MAC comes back as if it were the initiator's.
	err, mirrored := meet(t, accept(ours, "p"), func(conn io.ReadWriter) error {
		var challenge [challengeSize]byte
		if _, err := conn.Write(hello(proof.Version)); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, challenge[:]); err != nil {
			return err
		}
		if _, err := conn.Write(challenge[helloSize:]); err != nil {
			return err
		}
		var rejected [32]byte
		_, err := io.ReadFull(conn, rejected[:])
		if rejected != [32]byte{} {
			return errors.New("the acceptor confirmed")
		}
		return err
	})
	require.ErrorIs(t, err, proof.ErrKey)
	require.NoError(t, mirrored)

	// The hello of another initiator is no challenge.
	err, _ = meet(t, dial(ours, "p"), replay(hello(proof.Version)))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func hello(version byte) []byte {
	return append([]byte("RMAproof\x00"+string(rune(version))), bytes.Repeat([]byte{9}, 32)...)
}

func TestAnotherVersionIsNamedToBothSides(t *testing.T) {
	err, farErr := meet(t, accept(ours, "p"), func(conn io.ReadWriter) error {
		if _, err := conn.Write(hello(7)); err != nil {
			return err
		}
		answer, err := io.ReadAll(conn)
		if string(answer) != "RMAproof\x00\x02" {
			return errors.New("the acceptor does not say its version")
		}
		return err
	})
	require.ErrorIs(t, err, proof.ErrVersion)
	require.ErrorContains(t, err, "speaks 7, this side 2")
	require.NoError(t, farErr)

	err, _ = meet(t, dial(ours, "p"), func(conn io.ReadWriter) error {
		if _, err := io.ReadFull(conn, make([]byte, helloSize)); err != nil {
			return err
		}
		_, err := conn.Write([]byte("RMAproof\x00\x07"))
		return err
	})
	require.ErrorIs(t, err, proof.ErrVersion)
	require.ErrorContains(t, err, "speaks 7, this side 2")
}

func TestStrangersAreToldNothing(t *testing.T) {
	for name, bytes := range map[string]string{
		"http": "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"tls":  "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"pmi":  "cmd=init pmi_version=1 pmi_subversion=1\n",
		"ones": "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	} {
		t.Run(name, func(t *testing.T) {
			conn := script{in: []byte(bytes)}
			require.ErrorIs(t, proof.Accept(&conn, ours, "p"), proof.ErrProtocol)
			require.Empty(t, conn.out)
			conn = script{in: []byte(bytes)}
			require.ErrorIs(t, proof.Dial(&conn, ours, "p"), proof.ErrProtocol)
			require.Len(t, conn.out, helloSize)
		})
	}
}

// Bytes after the proof are left for the caller.
func TestNothingBeyondTheProofIsRead(t *testing.T) {
	then := func(prove peer, say, hear string) peer {
		return func(conn io.ReadWriter) error {
			if err := prove(conn); err != nil {
				return err
			}
			var both sync.WaitGroup
			both.Go(func() { _, _ = conn.Write([]byte(say)) })
			heard := make([]byte, len(hear))
			_, err := io.ReadFull(conn, heard)
			both.Wait()
			if err == nil && string(heard) != hear {
				err = errors.New("heard " + string(heard))
			}
			return err
		}
	}
	dials, accepts := meet(t, then(dial(ours, "p"), "question", "answer"), then(accept(ours, "p"), "answer", "question"))
	require.NoError(t, dials)
	require.NoError(t, accepts)
}

func TestDeadlineIsTheCallers(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	require.NoError(t, near.SetDeadline(time.Unix(1, 0)))
	require.ErrorIs(t, proof.Dial(near, ours, "p"), os.ErrDeadlineExceeded)
	require.ErrorIs(t, proof.Accept(near, ours, "p"), os.ErrDeadlineExceeded)
}

func TestKeyOfWrongLengthSendsNothing(t *testing.T) {
	for _, key := range [][]byte{nil, {}, ours[:15], make([]byte, 513)} {
		var conn script
		require.ErrorIs(t, proof.Dial(&conn, key, "p"), proof.ErrKeyForm)
		require.ErrorIs(t, proof.Accept(&conn, key, "p"), proof.ErrKeyForm)
		require.Empty(t, conn.out)
	}
}

package root

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/proof"
)

// formingHost returns the root of a job, in this process, that waits for its ranks.
func formingHost(t *testing.T, size int) *host {
	t.Helper()
	s := rankOf(vacant(t), 0, size)
	l, err := listen(t.Context(), s)
	require.NoError(t, err)
	h := newHost(s, l)
	t.Cleanup(h.close)
	return h
}

func (h *host) rejected() (int, string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rejections.count, h.rejections.String()
}

func (h *host) seated() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.seats)
}

// claimed returns a connection that has proved the key and claimed a rank.
func claimed(t *testing.T, h *host, c claim) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", h.listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(await.Limit)))
	require.NoError(t, proof.Dial(conn, testKey, purpose))
	_, err = conn.Write(c.encode())
	require.NoError(t, err)
	return conn
}

func TestClaimsThatAreRejected(t *testing.T) {
	t.Parallel()
	h := formingHost(t, 4)
	claimed(t, h, claim{rank: 2, size: 4})
	await.True(t, "rank 2 is there", func() bool { return h.seated() == 1 })
	for _, c := range []struct {
		name  string
		claim claim
		says  string
	}{
		{"taken", claim{rank: 2, size: 4}, "rank 2 is taken by 127."},
		{"the root's", claim{rank: 0, size: 4}, "rank 0 is the root itself"},
		{"beyond the last", claim{rank: 4, size: 4}, "rank 4 of 4, allowed are 1 to 3"},
		{"largest", claim{rank: 1<<32 - 1, size: 4}, "allowed are 1 to 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := claimed(t, h, c.claim)
			v, err := readVerdict(conn)
			require.NoError(t, err)
			require.ErrorIs(t, v.err(), ErrClaim)
			require.ErrorContains(t, v.err(), c.says)
			_, err = conn.Read(make([]byte, 1))
			require.ErrorIs(t, err, io.EOF)
		})
	}
	require.Equal(t, 1, h.seated())
}

func TestLateRankIsRejected(t *testing.T) {
	members := joined(t, 2, ample)
	v, err := readVerdict(claimed(t, members[0].host, claim{rank: 1, size: 2}))
	require.NoError(t, err)
	require.ErrorIs(t, v.err(), ErrClaim)
	require.ErrorContains(t, v.err(), "begun")
}

// A rank that ends, or sends something out of turn, before the job has begun releases its number.
func TestNumberIsGivenBack(t *testing.T) {
	t.Parallel()
	h := formingHost(t, 3)
	rejected := 0
	for _, leave := range []func(conn net.Conn) error{
		func(conn net.Conn) error { return conn.Close() },
		func(conn net.Conn) error { return conn.(*net.TCPConn).CloseWrite() },
		func(conn net.Conn) error { _, err := conn.Write([]byte("x")); return err },
		func(conn net.Conn) error {
			return errors.Join(conn.(*net.TCPConn).SetLinger(0), conn.Close())
		},
	} {
		conn := claimed(t, h, claim{rank: 1, size: 3})
		await.True(t, "rank 1 is there", func() bool { return h.seated() == 1 })
		require.NoError(t, leave(conn))
		rejected++
		await.True(t, "rank 1 is gone", func() bool { n, _ := h.rejected(); return n == rejected && h.seated() == 0 })
		_, last := h.rejected()
		require.Contains(t, last, "rank 1 was there and has ended")
	}
}

func TestStrangersAreClosedAndChangeNothing(t *testing.T) {
	t.Parallel()
	h := formingHost(t, 2)
	for name, c := range map[string]struct {
		bytes []byte
		why   error
	}{
		"nothing":      {nil, io.ErrUnexpectedEOF},
		"http":         {[]byte("GET / HTTP/1.1\r\n\r\n"), proof.ErrProtocol},
		"another job":  {append([]byte("RMAproof\x00\x02"), make([]byte, 64)...), proof.ErrKey},
		"next version": {append([]byte("RMAproof\x00\x03"), make([]byte, 64)...), proof.ErrVersion},
		"much":         {bytes.Repeat([]byte("x"), 1<<20), proof.ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			before, _ := h.rejected()
			conn, err := net.Dial("tcp", h.listener.Addr().String())
			require.NoError(t, err)
			defer conn.Close()
			// The root may close the connection before all bytes are sent.
			_, _ = conn.Write(c.bytes)
			_ = conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, conn)
			await.True(t, "rejected", func() bool { n, _ := h.rejected(); return n == before+1 })
			_, last := h.rejected()
			require.Contains(t, last, c.why.Error())
		})
	}
	require.Zero(t, h.seated())
}

// Silent connections do not keep the ranks out.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	const size = 3
	h := formingHost(t, size)
	for range 4 * maxUnproven {
		conn, err := net.Dial("tcp", h.listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
	}
	var parts []part
	for rank := 1; rank < size; rank++ {
		parts = append(parts, part{rankOf(h.listener.Addr().String(), rank, size), ample, func(m *Member) error { return m.Finalize() }})
	}
	require.NoError(t, errors.Join(play(t, parts...)...))
	_, who := h.rejected()
	require.Contains(t, who, proof.ErrFull.Error())
}

func TestJoinIsRejected(t *testing.T) {
	t.Parallel()
	root := vacant(t)
	join := func(rank, size int, key []byte) <-chan error {
		ended := make(chan error, 1)
		go func() {
			m, err := Join(t.Context(), &Settings{Root: root, Rank: rank, Size: size, Key: key}, ample)
			if err == nil {
				err = m.Finalize()
			}
			ended <- err
		}()
		return ended
	}
	host := join(0, 3, testKey)
	require.ErrorIs(t, <-join(2, 3, []byte("another key of sixteen bytes")), proof.ErrKey)

	// Either of two processes that claim one number may be the first.
	one, other := join(1, 3, testKey), join(1, 3, testKey)
	var err error
	select {
	case err = <-one:
		one = other
	case err = <-other:
	}
	require.ErrorIs(t, err, ErrClaim)
	require.ErrorContains(t, err, "rank 1 is taken by 127.")
	require.NoError(t, <-join(2, 3, testKey))
	require.NoError(t, errors.Join(<-one, <-host))
}

func TestMissingRanksAreNamedToAll(t *testing.T) {
	t.Parallel()
	h := formingHost(t, 5)
	root := h.listener.Addr().String()
	ctx, overtime := context.WithCancelCause(t.Context())
	formed := make(chan error, 1)
	go func() {
		overtime(cmp.Or[error](await.Until(t.Context(), "ranks 2 and 3 to come", func() bool { return h.seated() == 2 }), overdue{brief}))
		formed <- h.form(ctx)
	}()
	none := func(m *Member) error { return errors.New("joined") }
	errs := play(t, part{rankOf(root, 2, 5), ample, none}, part{rankOf(root, 3, 5), ample, none})
	mine := <-formed
	for _, err := range append(errs, mine) {
		require.ErrorIs(t, err, ErrIncomplete)
		require.ErrorContains(t, err, "of the ranks 0 to 4 these did not come to "+root+": 1, 4")
		require.ErrorContains(t, err, overdue{brief}.Error())
	}
	require.ErrorIs(t, mine, context.DeadlineExceeded)
}

// The patience of a rank may end before that of the root, which then waits for the rank again.
func TestRankIsNotPatient(t *testing.T) {
	t.Parallel()
	h := formingHost(t, 3)
	ctx, overtime := context.WithCancelCause(t.Context())
	go func() {
		overtime(cmp.Or[error](await.Until(t.Context(), "rank 1 to come", func() bool { return h.seated() == 1 }), overdue{brief}))
	}()
	_, err := Join(ctx, rankOf(h.listener.Addr().String(), 1, 3), ample)
	require.ErrorIs(t, err, ErrIncomplete)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "rank 1 has reached the root")
	await.True(t, "rank 1 is gone", func() bool { return h.seated() == 0 })
}

// accepting listens, calls do with each connection, and closes the connection.
func accepting(t *testing.T, do func(conn net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", vacant(t))
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { defer conn.Close(); do(conn) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return l.Addr().String()
}

func TestRootThatIsNone(t *testing.T) {
	t.Parallel()
	answers := []error{ErrProtocol, proof.ErrProtocol}
	seat := func(conn net.Conn) bool {
		if proof.Accept(conn, testKey, purpose) != nil {
			return false
		}
		_, err := readClaim(conn)
		return err == nil
	}
	for _, c := range []struct {
		name string
		root string
		// want is an answer that ends Join if it is in answers, and otherwise the error of Join when its patience is
		// over.
		want error
		says string
	}{
		{"nobody listens", vacant(t), ErrUnreachable, "refused"},
		{"never answers", accepting(t, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }), ErrUnreachable, "it accepts the connection and says nothing; " + overdue{brief}.Error()},
		{"closes at once", accepting(t, func(conn net.Conn) {}), ErrUnreachable, "proof: "},
		{"says something else", accepting(t, func(conn net.Conn) { _, _ = io.WriteString(conn, "220 mail.example ESMTP\r\n") }), proof.ErrProtocol, "220 mail"},
		{"ends while others are awaited", accepting(t, func(conn net.Conn) { seat(conn) }), ErrUnreachable, "ended before all ranks were there"},
		{"is silent while others are awaited", accepting(t, func(conn net.Conn) {
			if seat(conn) {
				_, _ = io.Copy(io.Discard, conn)
			}
		}), ErrIncomplete, "waits for others"},
		{"malformed verdict", accepting(t, func(conn net.Conn) {
			if seat(conn) {
				_, _ = conn.Write(verdict{outcome: 99}.encode())
			}
		}), ErrProtocol, "outcome 99"},
		{"begins no job", accepting(t, func(conn net.Conn) {
			if seat(conn) {
				_, _ = conn.Write(verdict{outcome: begin}.encode())
			}
		}), ErrProtocol, "outcome 1 of job 0x0"},
		{"unknown name", "no-such-host.invalid:7000", ErrUnreachable, "no-such-host.invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			patience := brief
			if slices.Contains(answers, c.want) {
				patience = ample
			}
			m, err := Join(t.Context(), rankOf(c.root, 1, 2), patience)
			require.Nil(t, m)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "rank 1")
		})
	}
}

func TestAddressThatCannotBeBound(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", vacant(t))
	require.NoError(t, err)
	defer l.Close()
	for name, c := range map[string]struct{ root, says string }{
		"in use":        {l.Addr().String(), "(another job or another rank 0 listens there)"},
		"another's":     {"203.0.113.1:7000", "(this is not the host of RMA_ROOT, where rank 0 has to run)"},
		"not resolving": {"no-such-host.invalid:7000", "lookup no-such-host.invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Join(t.Context(), rankOf(c.root, 0, 2), brief)
			require.ErrorIs(t, err, ErrListen)
			require.ErrorContains(t, err, c.root)
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestJoinEndsWithItsContext(t *testing.T) {
	t.Parallel()
	why := errors.New("the user has gone home")
	ctx, cancel := context.WithCancelCause(t.Context())
	h := formingHost(t, 3)
	ended := make(chan error)
	for _, s := range []*Settings{rankOf(h.listener.Addr().String(), 1, 3), rankOf(vacant(t), 0, 3), rankOf(vacant(t), 1, 3)} {
		go func() {
			_, err := Join(ctx, s, ample)
			ended <- err
		}()
	}
	await.True(t, "rank 1 is there", func() bool { return h.seated() == 1 })
	cancel(why)
	for range 3 {
		require.ErrorIs(t, <-ended, why)
	}
}

// late is a context whose deadline has passed, but which has not ended yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Microsecond), true }

func TestTimeIsOver(t *testing.T) {
	soon, end := context.WithTimeout(t.Context(), time.Hour)
	require.False(t, timeIsOver(t.Context()))
	require.False(t, timeIsOver(soon))
	require.True(t, timeIsOver(late{t.Context()}))
	end()
	require.True(t, timeIsOver(soon))
}

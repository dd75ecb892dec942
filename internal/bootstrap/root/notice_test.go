package root

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/proof"
)

// A log records the log lines of a rank.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *log) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *log) says(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		await.True(t, text, func() bool { return strings.Contains(l.String(), text) })
	}
}

func TestNotice(t *testing.T) {
	closed := errors.New("connection refused")
	unknown := fmt.Errorf("dial: %w", &net.DNSError{Err: "no such host", Name: "host0", IsNotFound: true})
	slow := &net.DNSError{Err: "i/o timeout", Name: "host0", IsTimeout: true}
	for _, c := range []struct {
		name string
		err  func(second int) error
		want []int
	}{
		{"refused", func(int) error { return closed }, []int{3, 6, 12, 24, 48}},
		{"unknown", func(int) error { return unknown }, []int{0, 3, 6, 12, 24, 48}},
		{"a server of names that is silent", func(int) error { return slow }, []int{3, 6, 12, 24, 48}},
		{"known for a while", func(second int) error {
			if second > 9 {
				return unknown
			}
			return closed
		}, []int{3, 6, 10, 12, 24, 48}},
		{"not asked for long", func(second int) error {
			if second < 20 {
				return nil
			}
			return closed
		}, []int{20, 21, 22, 24, 48}},
	} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Now()
			n := newNotice(began, defaultNotice)
			var told []int
			for second := range 60 {
				if err := c.err(second); err != nil && n.due(began.Add(time.Duration(second)*time.Second), err) {
					told = append(told, second)
				}
			}
			require.Equal(t, c.want, told)
		})
	}
}

// Settings have the time of a rank's first warning, or say that it logs none.
func TestFirstNotice(t *testing.T) {
	began, closed := time.Unix(0, 0), errors.New("connection refused")
	for set, want := range map[time.Duration]time.Duration{0: 3 * time.Second, time.Minute: time.Minute, time.Millisecond: time.Millisecond} {
		n := newNotice(began, (&Settings{Notice: set}).firstNotice())
		require.False(t, n.due(began.Add(want-1), closed), "%v", set)
		require.True(t, n.due(began.Add(want), closed), "%v", set)
		require.False(t, n.due(began.Add(2*want-1), closed), "%v", set)
		require.True(t, n.due(began.Add(2*want), closed), "%v", set)
	}
	n := newNotice(began, (&Settings{Notice: -1}).firstNotice())
	require.False(t, n.due(began.Add(1000*time.Hour), closed))
}

func TestRejections(t *testing.T) {
	at := func(host string, port int) net.Addr { return &net.TCPAddr{IP: net.ParseIP(host), Port: port} }
	var r rejections
	require.Empty(t, r.String())
	require.True(t, r.record(at("10.0.0.1", 5), errors.New("bad")))
	for port := range 3 {
		require.False(t, r.record(at("10.0.0.1", port), errors.New("bad")))
	}
	require.True(t, r.record(at("10.0.0.2", 5), fmt.Errorf("read tcp 10.0.0.9:7->10.0.0.2:5: %w", io.ErrUnexpectedEOF)))
	require.False(t, r.record(at("10.0.0.2", 6), fmt.Errorf("read tcp 10.0.0.9:7->10.0.0.2:6: %w", io.ErrUnexpectedEOF)))
	require.True(t, r.record(at("2001:db8::1", 5), rankError("rank 2 \x1b[2J")))
	require.Equal(t, "10.0.0.1 (4 times): bad; 10.0.0.2 (2 times): read tcp 10.0.0.9:7: unexpected EOF; 2001:db8::1: rank 2  [2J", r.String())
}

// The reason for a rejection contains bytes of the unproven caller. One caller cannot fill the list of rejections with
// different bytes. All unproven callers together do not displace the rejections of ranks.
func TestRejectionsOfStrangers(t *testing.T) {
	var r rejections
	at := func(i int) net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, byte(i)), Port: 5} }
	for i := range 20 {
		require.Equal(t, i == 0, r.record(at(1), fmt.Errorf("%w: the peer begins with %d", proof.ErrProtocol, i)))
	}
	require.Len(t, r.kept, 1)
	for i := 2; i < 20; i++ {
		require.Equal(t, i <= mostRejections+1, r.record(at(i), errors.New(strings.Repeat("x", 1<<10))), "host %d: the first without room is told, no other", i)
	}
	require.Len(t, r.kept, mostRejections)
	for i := range 20 {
		require.Equal(t, i < mostRejections, r.record(at(1), rankError(fmt.Sprintf("rank %d was there", i))))
	}
	require.Len(t, r.kept, 2*mostRejections)
	require.Contains(t, r.String(), "10.0.0.1 (20 times): proof: not this protocol: the peer begins with 0;")
	require.True(t, strings.HasSuffix(r.String(), "10.0.0.1: rank 7 was there; and 23 more"), r.String())
	require.Less(t, len(r.String()), 20*(mostReasonBytes+50))
}

// Rank 0 logs which callers it rejects, and finally returns an error that names the missing ranks.
func TestRootLogsRejectedCallers(t *testing.T) {
	t.Parallel()
	var l log
	s := rankOf(vacant(t), 0, 4)
	s.Logger = l.logger()
	listener, err := listen(t.Context(), s)
	require.NoError(t, err)
	h := newHost(s, listener)
	t.Cleanup(h.close)
	_, err = Join(t.Context(), &Settings{Root: s.Root, Rank: 1, Size: 4, Key: []byte("another key of sixteen bytes")}, ample)
	require.ErrorIs(t, err, proof.ErrKey)
	l.says(t, "level=WARN", "caller=127.", "another key")
	claimed(t, h, claim{rank: 2, size: 4})
	await.True(t, "rank 2 is there", func() bool { return h.seated() == 1 })
	_, err = Join(t.Context(), rankOf(s.Root, 2, 4), ample)
	require.ErrorIs(t, err, ErrClaim)
	l.says(t, "rank 2 is taken by 127.")
	h.remind()
	l.says(t, "rank 0 waits for other ranks to start", `missing="1, 3"`, "root="+s.Root)
	over := errors.New("patience is over")
	err = h.giveUp(over)
	require.ErrorIs(t, err, ErrIncomplete)
	require.ErrorIs(t, err, over)
	require.ErrorContains(t, err, "of the ranks 0 to 3 these did not come to "+s.Root+": 1, 3 (rejected or gone: 127.0.0.1: "+proof.ErrKey.Error()+"; 127.0.0.1: rank 2 is taken by 127.")
}

// A logger whose disk is full fails or blocks. Neither delays a join or its end.
func TestLoggerOnAFullDisk(t *testing.T) {
	for _, name := range []string{"fails", "blocks"} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			release := make(chan struct{})
			defer close(release)
			full := slog.New(slog.NewTextHandler(disk(func() error {
				calls.Add(1)
				if name == "blocks" {
					<-release
				}
				return syscall.ENOSPC
			}), nil))
			root := vacant(t)
			parts := []part{{rankOf(root, 0, 3), ample, exchange}, {rankOf(root, 1, 3), ample, exchange}, {rankOf(root, 2, 3), ample, exchange}}
			for _, p := range parts {
				p.settings.Logger = full
			}
			stranger := rankOf(root, 1, 3)
			stranger.Key = proof.NewKey()
			joined := make(chan error, 1)
			go func() { joined <- errors.Join(play(t, parts[:2]...)...) }()
			_, err := Join(t.Context(), stranger, ample)
			require.ErrorIs(t, err, proof.ErrKey)
			await.True(t, "the logger is called", func() bool { return calls.Load() > 0 })
			require.NoError(t, errors.Join(play(t, parts[2])...))
			require.NoError(t, <-joined)

			alone := rankOf(vacant(t), 0, 2)
			alone.Logger = full
			_, err = Join(t.Context(), alone, brief)
			require.ErrorIs(t, err, ErrIncomplete)
		})
	}
}

type disk func() error

func (d disk) Write([]byte) (int, error) { return 0, d() }

// A name that is not known is logged at once, because it is most likely wrong. The rank tries again meanwhile, and its
// error begins with the name.
func TestUnknownNameIsLoggedAtOnce(t *testing.T) {
	t.Parallel()
	for rank, c := range []struct{ tells, says string }{
		{"rank 0 waits for the host name of the root to be known", "root: rank 0 cannot listen on RMA_ROOT=no-such-host.invalid:7000: "},
		{"the root does not answer, and is called again", "root: no root: rank 1 got no answer at no-such-host.invalid:7000: "},
	} {
		var l log
		s := rankOf("no-such-host.invalid:7000", rank, 2)
		s.Logger = l.logger()
		_, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip", "no-such-host.invalid")
		if !isUnknown(err) {
			t.Skipf("skipped: whether a name is known cannot be found out here: %v", err)
		}
		_, err = Join(t.Context(), s, brief)
		if err != nil && strings.Contains(err.Error(), "i/o timeout") {
			t.Skipf("skipped: whether a name is known cannot be found out within the test's patience here: %v", err)
		}
		require.True(t, isUnknown(err), "%v", err)
		require.True(t, strings.HasPrefix(err.Error(), c.says), "%v", err)
		require.True(t, strings.HasSuffix(err.Error(), "; "+overdue{brief}.Error()), "%v", err)
		l.says(t, "level=WARN", c.tells, "root=no-such-host.invalid:7000", "no such host")
	}
}

// A rank that gets no answer, and a root that misses ranks, log that after some time, unless Notice is negative.
func TestLongWaitsAreLogged(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var l, none log
	closed, open := rankOf(vacant(t), 1, 2), rankOf(vacant(t), 0, 3)
	closedToo, openToo := rankOf(closed.Root, 1, 2), rankOf(vacant(t), 0, 3)
	ended := make(chan error, 4)
	for _, s := range []*Settings{closedToo, openToo, closed, open} {
		s.Logger = l.logger()
		if s == closedToo || s == openToo {
			s.Logger, s.Notice = none.logger(), -1
		}
		go func() {
			_, err := Join(ctx, s, ample)
			ended <- err
		}()
	}
	l.says(t, `msg="the root does not answer, and is called again" rank=1 root=`+closed.Root, "connection refused",
		`msg="rank 0 waits for other ranks to start" missing="1, 2" size=3 root=`+open.Root)
	cancel()
	require.Error(t, errors.Join(<-ended, <-ended, <-ended, <-ended))
	require.Empty(t, none.String())
}

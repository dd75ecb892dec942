package root

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"time"

	"github.com/onesided/rma/internal/bootstrap/bootconn"
	"github.com/onesided/rma/internal/bootstrap/pmi"
	"github.com/onesided/rma/internal/logqueue"
	"github.com/onesided/rma/internal/proof"
)

const (
	// proofTime bounds the proof and the claim, on either side, and one attempt to connect.
	proofTime = 5 * time.Second
	// A rank calls the root again after firstPause, then after twice that, and so on until longestPause.
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
)

// A Member is a rank of a complete job.
type Member struct {
	*pmi.Client

	job      uint64
	key      []byte
	patience time.Duration
	// finalized is set when the root has accepted that this rank needs it no more. finalizeErr is the error of that
	// request.
	finalized   bool
	finalizeErr error
	// host is nil except in rank 0. logs is closed except there.
	host *host
	logs *logqueue.Queue
}

// Join makes this process the rank of the settings, and returns when all ranks have joined. Rank 0 serves them; the
// others call it until it answers. Join takes no longer than patience, which every rank counts from its own call.
func Join(ctx context.Context, settings *Settings, patience time.Duration) (*Member, error) {
	if err := settings.check(); err != nil {
		return nil, err
	}
	if ctx == nil || patience <= 0 {
		return nil, fmt.Errorf("%w: start timeout %v, must be more than 0, and there must be a context", ErrSettings, patience)
	}
	own := *settings
	settings = &own
	m := &Member{key: settings.Key, patience: patience, logs: logqueue.New(settings.Logger)}
	settings.Logger = m.logs.Logger()
	limited, cancel := context.WithTimeoutCause(ctx, patience, overdue{patience})
	defer cancel()
	var err error
	if settings.Rank == 0 {
		m.Client, m.host, err = lead(limited, settings)
	} else {
		m.Client, m.job, err = follow(limited, settings)
	}
	if m.host != nil {
		m.job = m.host.job
	} else {
		m.logs.Close()
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// overdue is the cause with which the time for joining ends.
type overdue struct{ time.Duration }

func (e overdue) Error() string { return fmt.Sprintf("root: start timeout of %v is over", e.Duration) }

// Timeout makes the error a timeout in the sense of package net.
func (overdue) Timeout() bool { return true }

func (overdue) Is(target error) bool { return target == context.DeadlineExceeded }

// Job returns a number that all ranks of this job have in common, and no other job has. It is the [Settings.After]
// with which this process joins the next job.
func (m *Member) Job() uint64 { return m.job }

// Key returns the job's key.
func (m *Member) Key() []byte { return m.key }

// Finalize reports to the root that this rank needs it no more. In rank 0 it returns when all ranks have finalized or
// lost their connection, or after the patience with which the rank joined. The root is then closed. The error is
// ErrUnfinished if ranks still needed it.
func (m *Member) Finalize() error { return m.FinalizeContext(context.Background()) }

// FinalizeContext is like Finalize, and waits only while ctx lasts. If ctx ends first, the error wraps ctx's and, in
// rank 0, names the ranks that still need the root. The root then continues to serve, and another FinalizeContext
// continues where this one stopped, with the whole patience again. It may be called by one goroutine at a time.
func (m *Member) FinalizeContext(ctx context.Context) error {
	if !m.finalized {
		err := m.Client.FinalizeContext(ctx)
		if err != nil && errors.Is(err, ctx.Err()) {
			return err
		}
		m.finalized, m.finalizeErr = true, err
	}
	if m.host == nil {
		return m.finalizeErr
	}
	err := m.host.finish(ctx, m.patience)
	if err != nil && errors.Is(err, ctx.Err()) {
		return err
	}
	m.logs.Close()
	return errors.Join(m.finalizeErr, err)
}

// Dismiss ends the connection of a rank that has failed without closing it, such as a stopped process. Finalize does
// not wait for that rank. Only rank 0 has connections with others.
func (m *Member) Dismiss(rank int) {
	if m.host != nil {
		m.host.dismiss(rank)
	}
}

// Close leaves the job without Finalize. In rank 0 it closes the root, which ends the exchange for all.
func (m *Member) Close() error {
	err := m.Client.Close()
	if m.host != nil {
		m.host.close()
		m.logs.Close()
	}
	return err
}

// follow joins as a rank other than 0.
func follow(ctx context.Context, s *Settings) (_ *pmi.Client, job uint64, _ error) {
	c := caller{Settings: s}
	notice := newNotice(time.Now(), s.firstNotice())
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		client, err := c.call(ctx)
		if err == nil {
			return client, c.job, nil
		}
		if ctx.Err() == nil && final(err) {
			return nil, 0, fmt.Errorf("root: rank %d at %s: %w", s.Rank, s.Root, err)
		}
		// The reasons of earlier attempts say more than the end of the time.
		if !timeIsOver(ctx) {
			c.last = err
		}
		if ctx.Err() == nil && notice.due(time.Now(), err) {
			s.log().Warn("the root does not answer, and is called again", "rank", s.Rank, "root", s.Root, "why", err)
		}
		select {
		case <-ctx.Done():
			return nil, 0, c.timeoutError(ctx)
		// The jitter spreads the calls of ranks that were started at once.
		case <-time.After(pause/2 + rand.N(pause)):
		}
	}
}

// timeIsOver reports whether the deadline of a context has passed. The context may not have ended yet: an attempt has
// its own timer for the deadline.
func timeIsOver(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// final reports whether calling again is useless.
func final(err error) bool {
	var (
		untrusted *tls.CertificateVerificationError
		plain     tls.RecordHeaderError
		alert     *net.OpError
	)
	if errors.As(err, &untrusted) || errors.As(err, &plain) || errors.As(err, &alert) && alert.Op == "remote error" {
		return true
	}
	for _, reason := range []error{proof.ErrKey, proof.ErrVersion, proof.ErrProtocol, ErrClaim, ErrIncomplete, ErrDisagreement, ErrProtocol, ErrLost, pmi.ErrProtocol, pmi.ErrRejected} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

type caller struct {
	*Settings
	// seated is set when the claim was made and not rejected.
	seated bool
	// connected is set if the last attempt had a connection.
	connected bool
	// job is the number of the job that has begun.
	job uint64
	// last is the error of the last attempt that was not cut short by the end of the time.
	last error
}

// timeoutError returns the error at the end of the time.
func (c *caller) timeoutError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if c.seated {
		return fmt.Errorf("%w: rank %d has reached the root at %s and waits for others of %d: %w", ErrIncomplete, c.Rank, c.Root, c.Size, cause)
	}
	why := c.last
	switch {
	case why != nil:
	case c.connected:
		why = errSilent
	default:
		why = errClosed
	}
	return fmt.Errorf("%w: rank %d got no answer at %s: %w; %w", ErrUnreachable, c.Rank, c.Root, why, cause)
}

// These errors say what is known of a root when the first attempt was cut short.
var (
	errSilent = errors.New("it accepts the connection and says nothing")
	errClosed = errors.New("it accepts no connection")
)

func (s *Settings) dialer() *net.Dialer {
	return s.connection().Dialer(proofTime)
}

func (c *caller) call(ctx context.Context) (client *pmi.Client, err error) {
	c.seated, c.connected = false, false
	raw, err := c.dialer().DialContext(ctx, "tcp", c.Root)
	if err != nil {
		return nil, err
	}
	c.connected = true
	host, _, err := net.SplitHostPort(c.Root)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	conn := c.connection().Call(raw, host)
	// Every call that waits on a closed connection returns, whatever its deadline.
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer func() {
		if !stop() && err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			client = nil
			_ = conn.Close()
		}
	}()
	if err := conn.SetDeadline(time.Now().Add(proofTime)); err != nil {
		return nil, err
	}
	if err := bootconn.Handshake(conn); err != nil {
		return nil, err
	}
	if err := proof.Dial(conn, c.Key, purpose); err != nil {
		return nil, err
	}
	if _, err := conn.Write(claim{rank: uint32(c.Rank), size: uint32(c.Size), after: c.After, terms: c.Terms}.encode()); err != nil {
		return nil, err
	}
	// The root may have the claim, also if the time ends right now.
	c.seated = true
	if err := conn.SetDeadline(time.Time{}); err != nil {
		c.seated = ctx.Err() != nil
		return nil, err
	}
	c.log().Info("reached the root, and waits for the other ranks", "rank", c.Rank, "root", c.Root)
	v, err := readVerdict(conn)
	if err != nil {
		c.seated = ctx.Err() != nil
		return nil, fmt.Errorf("the root ended before all ranks were there: %w", err)
	}
	if err := v.err(); err != nil {
		return nil, err
	}
	c.job = v.job
	return pmi.New(&begunConn{Conn: conn, root: c.Root}, c.Rank, c.Size)
}

// A begunConn is a connection with the root of a job that has begun. If it breaks, rank 0 has ended. The error must
// say so, because users do not know rank 0 as a manager.
type begunConn struct {
	net.Conn
	root string
}

func (c *begunConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.explain(err)
}

func (c *begunConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.explain(err)
}

func (c *begunConn) explain(err error) error {
	// The end of this side, and its deadlines, say nothing of the other side.
	if err == nil || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: rank 0, which serves the exchange at %s, has ended or cannot be reached: %w", ErrLost, c.root, err)
}

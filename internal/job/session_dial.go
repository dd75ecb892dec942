package job

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/bootstrap/bootconn"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/proof"
)

// Dial begins a session with the process that listens at an address.
func Dial(ctx context.Context, address string, options ...Option) (*World, error) {
	if ctx == nil {
		return nil, nilArgument("Dial", "context")
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("world: Dial: %w: %q is not host:port", ErrArgument, address)
	}
	s, key, err := sessionSettings(options, false)
	if err != nil {
		return nil, fmt.Errorf("world: Dial: %w", err)
	}
	s.dialed = address
	ctx, cancel := context.WithTimeoutCause(ctx, s.patience, fmt.Errorf("no session with %s within %v", address, s.patience))
	defer cancel()
	defer s.attendDial(address)()
	for {
		w, err := s.dial(ctx, address, host, key)
		switch {
		case err == nil:
			return w, nil
		case !errors.Is(err, errFull) || ctx.Err() != nil:
			return nil, errtext.Errorf("world: Dial: %w", cutShort(ctx, err))
		}
		s.attempted(err)
		select {
		case <-ctx.Done():
		case <-time.After(callAgain):
		}
	}
}

// attendDial logs once that Dial waits, after the time of WithStall, with the error of its last attempt. After stop it logs nothing.
func (s *Settings) attendDial(address string) (stop func()) {
	var last atomic.Pointer[error]
	s.attempted = func(why error) { last.Store(&why) }
	if s.stall == 0 {
		return func() {}
	}
	told := make(chan struct{})
	timer := time.AfterFunc(s.stall, func() {
		defer close(told)
		report := []any{"call", "world.Dial", "for", s.stall, "waits for", "the server at " + address}
		if why := last.Load(); why != nil {
			report = append(report, "why", *why)
		}
		s.logger.Warn("a call waits long", report...)
	})
	return func() {
		if !timer.Stop() {
			<-told
		}
	}
}

// dial begins a session, unless the server has no place for it now: errFull.
func (s *Settings) dial(ctx context.Context, address, host string, key []byte) (*World, error) {
	conn, err := s.call(ctx, address, host, key, proofTime)
	if err != nil {
		return nil, err
	}
	session, settings := newSession(conn, *s)
	// The World keeps these settings. Only Dial reports attempts.
	settings.attempted = nil
	w, err := join(ctx, 1, 2, overLine(conn, 1), settings)
	if err != nil {
		_ = conn.Close()
		return nil, errtext.Errorf("session with %s: %w", address, err)
	}
	if err := awaitWelcome(ctx, conn); err != nil {
		_ = conn.Close()
		return nil, errors.Join(errtext.Errorf("session with %s: %w", address, err), w.depart())
	}
	session.start()
	return w, nil
}

// callAgain is after how long a server is called again that had no time.
const callAgain = 50 * time.Millisecond

// call gives a line to a server, which has proved the key. A server that many call at once hangs up
// on some, or has no time for them: those call again. limit bounds one call.
func (s *Settings) call(ctx context.Context, address, host string, key []byte, limit time.Duration) (net.Conn, error) {
	// before is how the call before ended: what comes of this one, in the time that is left, says less.
	var before error
	for {
		conn, err := s.callOnce(ctx, address, host, key, limit)
		if err == nil {
			return conn, nil
		}
		if !hadNoTime(err) || ctx.Err() != nil {
			return nil, errors.Join(before, err)
		}
		before = err
		if s.attempted != nil {
			s.attempted(err)
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(callAgain):
		}
	}
}

// unreachable is why a server could not be called at all.
type unreachable struct{ error }

func (u *unreachable) Unwrap() error { return u.error }

// hadNoTime reports whether a server may have ended a call, or left it alone, because of others.
func hadNoTime(err error) bool {
	var timeout net.Error
	var absent *unreachable
	return proof.Ended(err) || !errors.As(err, &absent) && errors.As(err, &timeout) && timeout.Timeout()
}

func (s *Settings) callOnce(ctx context.Context, address, host string, key []byte, limit time.Duration) (net.Conn, error) {
	raw, err := s.line().Dialer(limit).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, &unreachable{err}
	}
	if s.keyless && !isLoopback(raw.RemoteAddr()) {
		_ = raw.Close()
		return nil, fmt.Errorf("%w: %s is no loopback address, and WithoutKey is for those only; set RMA_SERVE_KEY_FILE, or WithKey", ErrArgument, address)
	}
	conn := s.line().Call(raw, host)
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	err = conn.SetDeadline(time.Now().Add(limit))
	if err == nil {
		err = bootconn.Handshake(conn)
	}
	if err == nil {
		err = proof.Dial(conn, key, sessionPurpose)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// cutShort adds to an error that came of it why a context has ended. The network looks at deadlines by a clock of its
// own, which may be ahead of the context's.
func cutShort(ctx context.Context, err error) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done()
	}
	if ctx.Err() == nil {
		return err
	}
	for _, end := range [...]error{context.Cause(ctx), ctx.Err()} {
		if !errors.Is(err, end) {
			err = fmt.Errorf("%w: %w", end, err)
		}
	}
	return err
}

func isLoopback(address net.Addr) bool {
	bound, err := netip.ParseAddrPort(address.String())
	return err == nil && bound.Addr().Unmap().IsLoopback()
}

// Dialed reports whether this World is one of Dial.
func (w *World) Dialed() bool { return w.session != nil && w.rank == 1 }

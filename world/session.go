package world

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/verbs/tcp/proof"
	"github.com/onesided/rma/world/line"
)

// A session is a World of two that were not started together: rank 0 has accepted it, from a
// [Listener], and rank 1 has dialed. Its ranks find each other over a line, which stays for as
// long as the session lasts: when a side leaves it says so there first, since the other side,
// which knows nothing of what this one is about to call, has to leave too, for Close to end; and
// that a process has died its system tells there, also before there is any link.

// sessionPurpose is that of the proof of the key.
const sessionPurpose = "rma session 1"

// ErrSession: a collective call in a session.
var ErrSession = errors.New("the World of a session has no collectives: only windows that are attached to, and what goes over them")

const (
	// proofTime bounds the proof of the key, on either side, and one attempt to connect.
	proofTime = 5 * time.Second
	// longestText bounds what is exchanged over a line, and a contact in a message.
	longestText = 4 << 10
	// welcome is what the server says when the session begins, bye what a side that leaves says, parting
	// what one that ends the session says, for which it waits endTime for the other to hang up.
	welcome = 'w'
	bye     = 'b'
	parting = 'p'
	endTime = time.Second
)

// keyOfNobody stands for no key, which is allowed on loopback addresses only.
var keyOfNobody = make([]byte, 32)

// A Session is a client of a [Listener].
type Session struct {
	world *World
	conn  net.Conn
	// left is closed when the other side leaves, or has failed; saidBye tells that this one does.
	left    chan struct{}
	saidBye atomic.Bool
	reading sync.WaitGroup
	// giveUp fails the other side, which has said that it leaves and ended its line, but did
	// not come to the end of the session, unless this side has met it there: met. It is set before left is closed.
	giveUp *time.Timer
	met    atomic.Bool
}

// newSession makes a World that was joined over a line that of a session.
func newSession(w *World, conn net.Conn) *Session {
	s := &Session{world: w, conn: conn, left: make(chan struct{})}
	w.yield, w.session = yieldToProcesses, s
	w.finalize = s.meet
	s.reading.Go(s.listen)
	return s
}

// World is that of the session. This process is rank 0 of it, the client rank 1.
func (s *Session) World() *World { return s.world }

// Begin lets the client's Dial return, which waits for it: what the client sends to a Service is lost
// where that is not there yet.
func (s *Session) Begin() error {
	if err := s.say(welcome); err != nil {
		return fmt.Errorf("world: beginning a session: %w", err)
	}
	return nil
}

// Left is closed when the client leaves, or has failed. The session's World is to be closed then,
// for which a client that leaves waits.
func (s *Session) Left() <-chan struct{} { return s.left }

// End ends the session from this side: what the client calls from now on, and what it waits in,
// fails with the cause's text. The session's World is still to be closed.
func (s *Session) End(cause error) {
	s.fail(cause)
	_ = s.conn.Close()
}

// EndInOrder is End that tells the client first, where that hears of it soon: its calls fail by [ErrLeft] then. Begin has
// been called before.
func (s *Session) EndInOrder(cause error) {
	s.saidBye.Store(true)
	if s.say(parting) == nil {
		late := time.NewTimer(endTime)
		defer late.Stop()
		select {
		case <-s.left:
		case <-late.C:
		}
	}
	s.End(cause)
}

// fail has the other side failed, for this one.
func (s *Session) fail(cause error) { s.world.roster.fail(1-s.world.rank, cause) }

// listen waits until the other side leaves, or its line ends.
func (s *Session) listen() {
	var said [1]byte
	_, err := io.ReadFull(s.conn, said[:])
	// Who waits in the World looks at what is closed here.
	defer s.world.channel.Ring()
	if err == nil && said[0] == bye {
		s.giveUp = time.AfterFunc(s.world.settings.silence, func() {
			if !s.met.Load() {
				s.fail(ErrLeft)
			}
		})
		close(s.left)
		return
	}
	defer close(s.left)
	switch {
	case err == nil && said[0] == parting:
		s.fail(ErrLeft)
		_ = s.conn.Close()
	case s.saidBye.Load():
		// The other side was sooner done.
	case err != nil:
		s.fail(fmt.Errorf("world: the line of the session has ended: %w", err))
	default:
		s.fail(fmt.Errorf("world: the line of the session: %w: it said %#x", errContact, said[0]))
	}
}

// leave tells the other side that this one leaves.
func (s *Session) leave() {
	s.saidBye.Store(true)
	// That it cannot be told is the other side's end.
	_ = s.say(bye)
}

func (s *Session) say(word byte) error {
	err := s.conn.SetWriteDeadline(time.Now().Add(proofTime))
	if err == nil {
		_, err = s.conn.Write([]byte{word})
	}
	return err
}

// awaitWelcome returns when the server has begun the session.
func awaitWelcome(ctx context.Context, conn net.Conn) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	var said [1]byte
	_, err := io.ReadFull(conn, said[:])
	if !stop() {
		// The line may be of no use now, though the word has come.
		err = errors.Join(err, context.Cause(ctx))
	}
	switch {
	case err != nil:
		return fmt.Errorf("the server has not begun it: %w", err)
	case said[0] != welcome:
		return fmt.Errorf("%w: the server said %#x", errContact, said[0])
	}
	return nil
}

// meet notes that the sides have met at the end of the session, or that one has failed.
func (s *Session) meet() error {
	s.met.Store(true)
	s.saidBye.Store(true)
	return nil
}

// stop ends listening, which looks at the World's devices.
func (s *Session) stop() {
	_ = s.conn.SetReadDeadline(time.Unix(1, 0))
	s.reading.Wait()
	if s.giveUp != nil {
		s.giveUp.Stop()
	}
}

// hangUp ends the line. That the server's has ended tells the client that the server keeps nothing for it any more,
// for which the client waits, no longer than the server may be silent. Its devices are closed by then, since the
// server may wait for them to answer or to end.
func (s *Session) hangUp() {
	if s.world.Dialed() && s.world.Failure(0) == nil && s.conn.SetReadDeadline(time.Now().Add(s.world.settings.silence)) == nil {
		_, _ = io.Copy(io.Discard, s.conn)
	}
	_ = s.conn.Close()
}

// overLine is an exchange with the other side of a line.
func overLine(conn net.Conn, rank int) Exchange {
	return func(ctx context.Context, mine string) ([]string, error) {
		stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		defer stop()
		var length [2]byte
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(mine))), mine...)); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return nil, err
		}
		n := binary.BigEndian.Uint16(length[:])
		if n > longestText {
			return nil, fmt.Errorf("%w of %d bytes, allowed are %d", errContact, n, longestText)
		}
		theirs := make([]byte, n)
		if _, err := io.ReadFull(conn, theirs); err != nil {
			return nil, err
		}
		all := []string{mine, mine}
		all[1-rank] = string(theirs)
		return all, nil
	}
}

// sessionSettings are those of either side of sessions, with the key by which they know each other.
func sessionSettings(options []Option, accepts bool) (s settings, key []byte, err error) {
	s, err = newSettings(options)
	if err != nil {
		return s, nil, err
	}
	if path := os.Getenv("RMA_KEY_FILE"); s.key == nil && path != "" {
		if s.key, err = proof.ReadKeyFile(path); err != nil {
			return s, nil, fmt.Errorf("%w: RMA_KEY_FILE: %w", ErrEnvironment, err)
		}
	}
	key = s.key
	if key == nil {
		key = keyOfNobody
	}
	if n := len(key); n < proof.MinKey || n > proof.MaxKey {
		return s, nil, fmt.Errorf("%w: a key of %d bytes (WithKey), allowed are %d to %d", ErrArgument, n, proof.MinKey, proof.MaxKey)
	}
	s.unshared = true
	return s, key, s.line().Check(accepts)
}

// line is how the sides of a session are connected first.
func (s *settings) line() *line.Settings { return &line.Settings{TLS: s.tls, Silence: s.silence} }

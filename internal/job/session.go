package job

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/bootstrap/bootconn"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/proof"
)

// A session is a World of two that were not started together: rank 0 has accepted it, from a
// [Listener], and rank 1 has dialed. Its ranks find each other over a line, which stays for as
// long as the session lasts: when a side leaves it says so there first, since the other side,
// which knows nothing of what this one is about to call, has to leave too, for Close to end; and
// that a process has died its system tells there, also before there is any link.

// sessionPurpose is that of the proof of the key.
const sessionPurpose = "rma session 1"

// ErrNoCollectives: a collective call in a session.
var ErrNoCollectives = errors.New("the World of a session has no collectives: only windows that are attached to, and what goes over them")

const (
	// proofTime bounds the proof of the key, on either side, and one attempt to connect.
	proofTime = 5 * time.Second
	// longestText bounds what is exchanged over a line, and a contact in a message.
	longestText = 4 << 10
	// welcome is what the server says when the session begins, bye what a side that leaves says. A client says active when
	// it has issued operations since it did so last, at most every activePeriod. parting is followed by a text, and said by
	// a side that ends the session, which waits endTime for the other to hang up. serverFull is a parting of a server that has
	// no place now: the client is to call again. As the first byte of a length, either is out of bounds.
	welcome    = 'w'
	bye        = 'b'
	active     = 'a'
	parting    = 'p'
	serverFull = 'f'
	endTime    = time.Second

	activePeriod = time.Second
	// longestReason bounds the text of a parting.
	longestReason = 512
)

// ErrEvicted: the server has ended the session of a client, for a reason that the error says.
var ErrEvicted = errors.New("world: the server has ended the session")

// errNoReason stands for the cause of a session's end where none was given.
var errNoReason = errors.New("no reason was given")

// errFull: the server has ended what began as a session because of others.
var errFull = errors.New("world: too many sessions begin at the server at once")

// keyOfNobody stands for no key: WithoutKey.
var keyOfNobody = make([]byte, 32)

// A Session is a client of a [Listener].
type Session struct {
	world *World
	conn  net.Conn
	since time.Time
	// activeAt is when the client has last said that it is active, in nanoseconds after since.
	activeAt atomic.Int64
	// heard is closed when the other side says nothing more here. reason is why the server has ended the session, if it has
	// said so, and set before.
	heard  chan struct{}
	reason error
	// left is closed when the other side leaves, or has failed; saidBye is set when this one leaves.
	left    chan struct{}
	saidBye atomic.Bool
	// saying guards that nothing is said after bye.
	saying  sync.Mutex
	reading sync.WaitGroup
	stopped chan struct{}
	// giveUp fails the other side, which has said that it leaves and ended its line, but did
	// not come to the end of the session, unless this side has met it there: met. It is set before left is closed.
	giveUp *time.Timer
	met    atomic.Bool
}

// newSession makes a session over a line, and the settings by which this side joins its World.
func newSession(conn net.Conn, joining Settings) (*Session, Settings) {
	s := &Session{conn: conn, heard: make(chan struct{}), left: make(chan struct{}), stopped: make(chan struct{})}
	joining.yield, joining.session = yieldToProcesses, s
	return s, joining
}

// adopt makes a World that of the session, before other goroutines can look at either.
func (s *Session) adopt(w *World) { s.world, w.session, w.finalize = w, s, s.meet }

// start begins the session, whose World was joined.
func (s *Session) start() {
	s.since = time.Now()
	s.reading.Go(s.listen)
	if s.world.Dialed() {
		s.reading.Go(s.report)
	}
}

// RemoteAddr is the address of the client, or of the last that translated it.
func (s *Session) RemoteAddr() net.Addr { return s.conn.RemoteAddr() }

// Certificate is that of the client, nil without TLS and where the configuration does not demand one.
func (s *Session) Certificate() *x509.Certificate {
	if secure, ok := s.conn.(*tls.Conn); ok {
		if all := secure.ConnectionState().PeerCertificates; len(all) > 0 {
			return all[0]
		}
	}
	return nil
}

// Since is when the session began, and Active when its client last issued operations, to a second or so.
func (s *Session) Since() time.Time  { return s.since }
func (s *Session) Active() time.Time { return s.since.Add(time.Duration(s.activeAt.Load())) }

// World is that of the session. This process is rank 0 of it, the client rank 1.
func (s *Session) World() *World { return s.world }

// Begin lets the client's Dial return, which waits for it: what the client sends to a Service is lost
// where that is not there yet.
func (s *Session) Begin() error {
	if err := s.say([]byte{welcome}); err != nil {
		return errtext.Errorf("world: beginning a session: %w", err)
	}
	return nil
}

// Left is closed when the client leaves, or has failed. The session's World is to be closed then,
// for which a client that leaves waits.
func (s *Session) Left() <-chan struct{} { return s.left }

// End ends the session from this side: what the client calls from now on, and what it waits in,
// fails. So do calls of the session's World, with the cause, which may be nil. The World is still to be closed.
func (s *Session) End(cause error) {
	s.fail(cmp.Or(cause, errNoReason))
	_ = s.conn.Close()
}

// EndInOrder is End that tells the client first, where that hears of it soon: its calls fail by [ErrLeft] then. Begin has
// been called before.
func (s *Session) EndInOrder(cause error) { s.part("", cause) }

// Evict is End that tells the client why, where that hears of it: its calls fail by [ErrEvicted] with the cause's text, or,
// where Begin has not been called, its Dial does.
func (s *Session) Evict(cause error) {
	cause = cmp.Or(cause, errNoReason)
	// An empty reason would be that of EndInOrder.
	s.part(cmp.Or(cause.Error(), errNoReason.Error()), cause)
}

// TurnAway is End of a session that has not begun, for which there is no time to say why: the client's Dial calls again.
func (s *Session) TurnAway(cause error) {
	s.saidBye.Store(true)
	_ = s.say(sentence(serverFull, ""))
	s.End(cause)
}

func (s *Session) part(reason string, cause error) {
	s.saidBye.Store(true)
	if s.say(sentence(parting, reason)) == nil {
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
	word, err := s.hear()
	// Who waits in the World looks at what is closed here.
	defer s.world.engine.Wake()
	if err == nil && word == bye {
		close(s.heard)
		s.giveUp = time.AfterFunc(s.world.settings.silence, func() {
			if !s.met.Load() {
				s.fail(ErrLeft)
			}
		})
		close(s.left)
		return
	}
	defer close(s.left)
	var reason error
	switch {
	case errors.Is(err, ErrEvicted), errors.Is(err, ErrLeft):
		reason = err
	case s.saidBye.Load():
		// The other side was sooner done.
	case err != nil:
		err = errtext.Errorf("world: the line of the session has ended: %w", err)
	default:
		err = fmt.Errorf("world: the line of the session: %w: it said %#x", errContact, word)
	}
	s.reason = reason
	close(s.heard)
	switch {
	case reason != nil:
		s.fail(reason)
		_ = s.conn.Close()
	case !s.saidBye.Load():
		s.fail(err)
	}
}

// hear returns what the other side says, but for active.
func (s *Session) hear() (byte, error) {
	for {
		word, err := hearWord(s.conn)
		if err != nil || word != active || s.world.Dialed() {
			return word, err
		}
		s.activeAt.Store(int64(time.Since(s.since)))
	}
}

// hearWord returns a word. A parting is an error: ErrLeft, or ErrEvicted with a reason, or errFull.
func hearWord(conn net.Conn) (byte, error) {
	var word [1]byte
	if _, err := io.ReadFull(conn, word[:]); err != nil {
		return 0, err
	}
	if word[0] != parting && word[0] != serverFull {
		return word[0], nil
	}
	return word[0], hearReason(conn, word[0])
}

// hearReason returns the error that follows a word of parting.
func hearReason(conn io.Reader, word byte) error {
	var length [2]byte
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint16(length[:])
	if n > longestReason {
		return fmt.Errorf("%w: a reason of %s, allowed are %d", errContact, errtext.Count(n, "byte"), longestReason)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(conn, text); err != nil {
		return err
	}
	switch {
	case word == serverFull:
		return errFull
	case n == 0:
		return ErrLeft
	}
	return fmt.Errorf("%w: %q", ErrEvicted, text)
}

// sentence is a word with a reason.
func sentence(word byte, reason string) []byte {
	reason = reason[:min(len(reason), longestReason)]
	return append(binary.BigEndian.AppendUint16([]byte{word}, uint16(len(reason))), reason...)
}

// lastWord returns why a session has failed of which a connection has ended for cause: why the server has ended it, if it says
// so within endTime, or else cause. The server says why before it ends a connection.
func (s *Session) lastWord(cause error) error {
	if s.saidBye.Load() {
		return cause
	}
	late := time.NewTimer(endTime)
	defer late.Stop()
	select {
	case <-s.heard:
		if s.reason != nil {
			return s.reason
		}
	case <-late.C:
	}
	return cause
}

// report tells the server, now and then, that the client issues operations.
func (s *Session) report() {
	ticks := time.NewTicker(activePeriod)
	defer ticks.Stop()
	for last := uint64(0); ; {
		select {
		case <-s.stopped:
			return
		case <-ticks.C:
		}
		if issued := s.world.issued(); issued != last {
			last = issued
			s.saying.Lock()
			if !s.saidBye.Load() {
				// Of the end of the line hears listen.
				_ = s.say([]byte{active})
			}
			s.saying.Unlock()
		}
	}
}

// leave tells the other side that this one leaves.
func (s *Session) leave() {
	s.saying.Lock()
	defer s.saying.Unlock()
	s.saidBye.Store(true)
	// That it cannot be told is the other side's end.
	_ = s.say([]byte{bye})
}

func (s *Session) say(words []byte) error { return say(s.conn, words) }

func say(conn net.Conn, words []byte) error {
	err := conn.SetWriteDeadline(time.Now().Add(proofTime))
	if err == nil {
		_, err = conn.Write(words)
	}
	return err
}

// awaitWelcome returns when the server has begun the session.
func awaitWelcome(ctx context.Context, conn net.Conn) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	word, err := hearWord(conn)
	if !stop() {
		// The line may be of no use now, though the word has come.
		err = errors.Join(err, context.Cause(ctx))
	}
	switch {
	case err != nil:
		return fmt.Errorf("the server has not begun it: %w", err)
	case word != welcome:
		return fmt.Errorf("%w: the server said %#x", errContact, word)
	}
	return nil
}

// meet notes that the sides have met at the end of the session, or that one has failed.
func (s *Session) meet(context.Context) error {
	s.met.Store(true)
	s.saidBye.Store(true)
	return nil
}

// stop ends listening, which looks at the World's devices.
func (s *Session) stop() {
	close(s.stopped)
	_ = s.conn.SetReadDeadline(time.Unix(1, 0))
	s.reading.Wait()
	if s.giveUp != nil {
		s.giveUp.Stop()
	}
}

// hangUp ends the line. That the server's has ended tells the client that the server keeps nothing for it any more,
// for which the client waits, no longer than the server may be silent, nor than ctx lasts: then the line stays, and it is an error.
// The client's devices are closed by then, since the server may wait for them to answer or to end.
func (s *Session) hangUp(ctx context.Context) error {
	if s.world.Dialed() && s.world.Failure(0) == nil && s.conn.SetReadDeadline(time.Now().Add(s.world.settings.silence)) == nil {
		cut := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(cut)
			_ = s.conn.SetReadDeadline(time.Unix(1, 0))
		})
		_, err := io.Copy(io.Discard, s.conn)
		if !stop() {
			<-cut
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return fmt.Errorf("world: Close: %w: rank 0 has not ended the session", errtext.Ended(ctx))
			}
		}
	}
	_ = s.conn.Close()
	return nil
}

// overLine is an exchange with the other side of a line.
func overLine(conn net.Conn, rank int) Exchange {
	return func(ctx context.Context, mine string) ([]string, error) {
		stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
		theirs, err := swapTexts(conn, mine)
		if !stop() {
			// The line may be of no use now, though the text has come.
			err = errors.Join(err, context.Cause(ctx))
		}
		if err != nil {
			return nil, err
		}
		all := []string{mine, mine}
		all[1-rank] = theirs
		return all, nil
	}
}

// swapTexts sends this side's text over a line, and returns the other side's.
func swapTexts(conn net.Conn, mine string) (theirs string, err error) {
	var length [2]byte
	if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(mine))), mine...)); err != nil {
		return "", err
	}
	if _, err := io.ReadFull(conn, length[:]); err != nil {
		return "", err
	}
	if length[0] == parting || length[0] == serverFull {
		return "", hearReason(io.MultiReader(bytes.NewReader(length[1:]), conn), length[0])
	}
	n := binary.BigEndian.Uint16(length[:])
	if n > longestText {
		return "", fmt.Errorf("%w of %s, allowed are %d", errContact, errtext.Count(n, "byte"), longestText)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(conn, text); err != nil {
		return "", err
	}
	return string(text), nil
}

// sessionSettings are those of either side of sessions, with the key by which they know each other.
func sessionSettings(options []Option, accepts bool) (s Settings, key []byte, err error) {
	s, err = newSettings(options)
	if err != nil {
		return s, nil, err
	}
	switch {
	case s.keyless && s.key != nil:
		return s, nil, fmt.Errorf("%w: WithKey and WithoutKey, allowed is one of them", ErrArgument)
	case s.keyless:
		key = keyOfNobody
	case s.key == nil:
		if s.key, err = s.sessionKey(); err != nil {
			return s, nil, err
		}
		fallthrough
	default:
		key = s.key
	}
	s.unshared = true
	return s, key, s.line().Check(accepts)
}

// sessionKey reads the key that the environment names.
func (s *Settings) sessionKey() ([]byte, error) {
	variable := "RMA_SERVE_KEY_FILE"
	if os.Getenv(variable) == "" {
		variable = "RMA_KEY_FILE"
	}
	path := os.Getenv(variable)
	if path == "" {
		return nil, fmt.Errorf("%w: no key: set RMA_SERVE_KEY_FILE, or WithKey; or WithoutKey, with which every user of this host can connect, at a loopback address", ErrArgument)
	}
	if variable == "RMA_KEY_FILE" {
		s.logger.Warn("RMA_KEY_FILE, the key of the job, is used for sessions: its holders can join the job as ranks; set RMA_SERVE_KEY_FILE to another key for clients")
	}
	key, err := proof.ReadKeyFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrEnvironment, variable, err)
	}
	return key, nil
}

// line is how the sides of a session are connected first.
func (s *Settings) line() *bootconn.Settings {
	return &bootconn.Settings{TLS: s.tls, Silence: s.silence}
}

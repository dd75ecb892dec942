package pmi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// A Server is the manager of a job on one machine. For each rank it makes a
// connection whose other end a child process inherits.
type Server struct {
	size int
	name string
	// gone is told of each rank whose connection ended before it finalized.
	gone func(rank int)
	// abort is told of a rank's wish to end the job.
	abort func(rank, status int)

	serving sync.WaitGroup

	mu     sync.Mutex
	values map[string]string
	// pending are puts that the next barrier makes visible.
	pending map[string]string
	inside  map[int]*session
	// ended tells of the first rank that finalized or was lost, also before it began:
	// no barrier can be complete any more. It is empty while there is none.
	ended string
	open  map[*session]struct{}
}

// Events is what the owner of a Server wants to know. Functions may be nil. They are
// called from the server's goroutines.
type Events struct {
	// Gone: the connection of a rank that had started the protocol ended before
	// the rank finalized.
	Gone func(rank int)
	// Abort: a rank asks for the end of the job with an exit status. It is called once
	// a rank.
	Abort func(rank, status int)
}

// MaxValues bounds what each rank of a job may put, in keys: one for each 800 bytes of a
// value.
const MaxValues = 1024

// NewServer serves a job of size ranks.
func NewServer(size int, events Events) *Server {
	s := &Server{size: size, name: fmt.Sprintf("kvs_%d", os.Getpid()), gone: events.Gone, abort: events.Abort,
		values: make(map[string]string), pending: make(map[string]string), inside: make(map[int]*session), open: make(map[*session]struct{})}
	if s.gone == nil {
		s.gone = func(int) {}
	}
	if s.abort == nil {
		s.abort = func(int, int) {}
	}
	s.values["PMI_process_mapping"] = fmt.Sprintf("(vector,(0,1,%d))", size)
	return s
}

// Child makes the connection of a rank: the file that its process inherits as
// descriptor fd, and the environment that tells it so. The caller closes the file
// when the process has started.
func (s *Server) Child(rank, fd int) (file *os.File, environment []string, err error) {
	if rank < 0 || rank >= s.size {
		return nil, nil, fmt.Errorf("%w: rank %d, allowed are 0 to %d", ErrArgument, rank, s.size-1)
	}
	// The lock keeps a process that is started meanwhile from inheriting both.
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("pmi: socketpair: %w", err)
	}
	mine := os.NewFile(uintptr(fds[0]), "pmi")
	conn, err := net.FileConn(mine)
	err = errors.Join(err, mine.Close())
	file = os.NewFile(uintptr(fds[1]), "PMI_FD")
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("pmi: %w", err), file.Close())
	}
	s.Serve(conn, rank)
	return file, []string{"PMI_FD=" + strconv.Itoa(fd), "PMI_RANK=" + strconv.Itoa(rank), "PMI_SIZE=" + strconv.Itoa(s.size)}, nil
}

// Serve serves one rank on a connection, which the server closes.
func (s *Server) Serve(conn net.Conn, rank int) {
	c := &session{server: s, rank: rank, conn: conn}
	s.mu.Lock()
	s.open[c] = struct{}{}
	s.mu.Unlock()
	s.serving.Go(c.run)
}

// Wait returns when the connections of all ranks have ended.
func (s *Server) Wait() { s.serving.Wait() }

// Close ends every connection and returns when nothing of the server runs.
func (s *Server) Close() error {
	s.mu.Lock()
	for c := range s.open {
		_ = c.conn.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
	return nil
}

// session is the connection of one rank.
type session struct {
	server    *Server
	rank      int
	conn      net.Conn
	started   bool
	finalized bool
	aborted   bool
	puts      int
}

func (c *session) run() {
	lines := newReader(c.conn)
	for lines.Scan() && c.serve(lines) {
	}
	s := c.server
	s.mu.Lock()
	delete(s.open, c)
	delete(s.inside, c.rank)
	_ = c.conn.Close()
	if s.ended == "" {
		s.ended = c.end()
	}
	s.fail()
	s.mu.Unlock()
	lost := c.started && !c.finalized
	if lost {
		s.gone(c.rank)
	}
}

// end tells how the rank has ended, in one word as the protocol wants it.
func (c *session) end() string {
	switch {
	case !c.started:
		return fmt.Sprintf("rank_%d_has_ended_before_it_joined", c.rank)
	case c.finalized:
		return fmt.Sprintf("rank_%d_has_finalized", c.rank)
	}
	return fmt.Sprintf("rank_%d_has_ended", c.rank)
}

// serve answers one line and tells whether to go on.
func (c *session) serve(lines *bufio.Scanner) bool {
	m, err := parse(lines.Text())
	if err != nil {
		return false
	}
	if !c.started && m["cmd"] != "init" {
		return false
	}
	switch s := c.server; m["cmd"] {
	case "init":
		c.started = true
		return c.answer("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
	case "get_maxes":
		return c.answer("cmd=maxes kvsname_max=256 keylen_max=%d vallen_max=%d", longestKey+1, longestValue)
	case "get_appnum":
		return c.answer("cmd=appnum appnum=0")
	case "get_my_kvsname":
		return c.answer("cmd=my_kvsname kvsname=%s", s.name)
	case "get_universe_size":
		return c.answer("cmd=universe_size size=%d", s.size)
	case "put":
		return c.put(m)
	case "get":
		s.mu.Lock()
		value, ok := s.values[m["key"]]
		s.mu.Unlock()
		if !ok || m["kvsname"] != s.name {
			return c.answer("cmd=get_result rc=-1 msg=key_not_found value=unknown")
		}
		return c.answer("cmd=get_result rc=0 msg=success value=%s", value)
	case "barrier_in":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inside[c.rank] = c
		if s.ended != "" {
			s.fail()
		} else if len(s.inside) == s.size {
			s.publish()
			s.release("rc=0")
		}
		return true
	case "finalize":
		c.finalized = true
		_ = c.answer("cmd=finalize_ack")
		return false
	case "abort":
		status, err := strconv.Atoi(m["exitcode"])
		if err != nil {
			status = 1
		}
		if !c.aborted {
			c.aborted = true
			s.abort(c.rank, status)
		}
		return true
	}
	return false
}

func (c *session) put(m message) bool {
	s := c.server
	key, value := m["key"], m["value"]
	c.puts++
	if m["kvsname"] != s.name || key == "" || len(key) > longestKey || len(value) > longestValue || c.puts > MaxValues {
		return c.answer("cmd=put_result rc=-1 msg=refused")
	}
	s.mu.Lock()
	s.pending[key] = value
	s.mu.Unlock()
	return c.answer("cmd=put_result rc=0 msg=success")
}

// publish makes what was put visible. It is called with the mutex.
func (s *Server) publish() {
	for key, value := range s.pending {
		s.values[key] = value
	}
	clear(s.pending)
}

// fail ends a barrier that cannot be complete. It is called with the mutex.
func (s *Server) fail() { s.release("rc=-1 msg=" + s.ended) }

// release answers those who are in the barrier. It is called with the mutex.
func (s *Server) release(how string) {
	for rank, c := range s.inside {
		_ = c.answer("cmd=barrier_out %s", how)
		delete(s.inside, rank)
	}
}

func (c *session) answer(format string, args ...any) bool {
	// A rank that does not read its answers must not hold up the others.
	_ = c.conn.SetWriteDeadline(time.Now().Add(answerTime))
	_, err := io.WriteString(c.conn, fmt.Sprintf(format, args...)+"\n")
	return err == nil
}

package pmi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/onesided/rma/internal/errtext"
)

// A Server is the manager of a job on one machine. For each rank it makes a connection, one end of which a child
// process inherits. A rank that has finalized may begin another job of the same ranks on its connection.
type Server struct {
	size int
	// gone is called for each rank whose connection ended before it finalized.
	gone func(rank int)
	// abort is called when a rank asks to end the job.
	abort func(rank, status int)
	// blame is called when a rank blames another: see Events.
	blame     func(rank, blamed int, left bool)
	notJoined func(rank int)

	serving sync.WaitGroup

	mu sync.Mutex
	// jobs holds the jobs, by number, that a rank has begun and not all ranks have finalized. incomplete is the first
	// number that not all ranks can begin, and why is the reason.
	jobs       map[int]*job
	incomplete int
	why        string
	open       map[*session]struct{}
}

// A job is a key-value space and the barrier of its ranks.
type job struct {
	name   string
	values map[string]string
	// pending are puts that the next barrier makes visible.
	pending map[string]string
	inside  map[int]*session
	// ended describes the first rank that finalized or was lost, even before it began: no later barrier can complete.
	// It is empty while there is none.
	ended string
	// finalized counts ranks.
	finalized int
}

// Events are callbacks of a Server. Functions may be nil. They are called from the server's goroutines.
type Events struct {
	// Gone is called when the connection of a rank that had started the protocol ended before the rank finalized.
	Gone func(rank int)
	// Abort is called when a rank asks for the end of the job with an exit status, once a rank.
	Abort func(rank, status int)
	// Blame is called when a rank reports that another has failed, or has left while it was needed. That may be the
	// reason if the rank fails, too. The last call counts. blamed is [NoRank] when the rank continues without the
	// rank that it has blamed, or has begun another job.
	Blame func(rank, blamed int, left bool)
	// NotJoined is called when a rank could not join its job. Blame follows with the rank that is the reason: another
	// rank, or the rank itself.
	NotJoined func(rank int)
}

// MaxValues is the number of keys that each rank of a job may put. A value takes one key for each 800 bytes.
const MaxValues = 1024

// NewServer returns a server for a job of size ranks.
func NewServer(size int, events Events) *Server {
	s := &Server{size: size, gone: events.Gone, abort: events.Abort, blame: events.Blame, notJoined: events.NotJoined, incomplete: math.MaxInt, jobs: make(map[int]*job), open: make(map[*session]struct{})}
	if s.gone == nil {
		s.gone = func(int) {}
	}
	if s.abort == nil {
		s.abort = func(int, int) {}
	}
	if s.blame == nil {
		s.blame = func(int, int, bool) {}
	}
	if s.notJoined == nil {
		s.notJoined = func(int) {}
	}
	return s
}

// job returns the n-th job. The caller holds the mutex.
func (s *Server) job(n int) *job {
	j, ok := s.jobs[n]
	if !ok {
		j = &job{name: fmt.Sprintf("kvs_%d_%d", os.Getpid(), n), pending: make(map[string]string), inside: make(map[int]*session),
			values: map[string]string{"PMI_process_mapping": fmt.Sprintf("(vector,(0,1,%d))", s.size)}}
		if n >= s.incomplete {
			j.ended = s.why
		}
		s.jobs[n] = j
	}
	return j
}

// lose ends barriers that cannot complete because a rank does not begin the n-th job or has left it. The caller holds
// the mutex.
func (s *Server) lose(n int, why string) {
	if n < s.incomplete {
		s.incomplete, s.why = n, why
	}
	for number, j := range s.jobs {
		if number >= n {
			j.end(why)
		}
	}
}

// Child makes the connection of a rank. It returns the file that the rank's process inherits as descriptor fd, and
// the environment variables that say so. The caller closes the file when the process has started.
func (s *Server) Child(rank, fd int) (file *os.File, environment []string, err error) {
	if rank < 0 || rank >= s.size {
		return nil, nil, fmt.Errorf("%w: rank %d, %s", ErrArgument, rank, errtext.Allowed(s.size-1))
	}
	// The lock keeps a process that is started meanwhile from inheriting both ends.
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

// Close ends every connection and returns when no goroutine of the server runs.
func (s *Server) Close() error {
	s.mu.Lock()
	for c := range s.open {
		_ = c.conn.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
	return nil
}

// A session is the connection of one rank.
type session struct {
	server *Server
	rank   int
	conn   net.Conn
	// begun counts the jobs that the rank has begun. job is the last of them, or nil once the rank has finalized it.
	begun int
	job   *job
	// aborted is set if the rank has requested the end of the job, blames if it blames another.
	aborted, blames bool
	puts            int
}

func (c *session) run() {
	lines := newReader(c.conn)
	for lines.Scan() && c.serve(lines) {
	}
	s := c.server
	s.mu.Lock()
	delete(s.open, c)
	_ = c.conn.Close()
	lost := c.job != nil
	if lost {
		delete(c.job.inside, c.rank)
		s.lose(c.begun-1, fmt.Sprintf("rank_%d_has_ended", c.rank))
	} else {
		s.lose(c.begun, fmt.Sprintf("rank_%d_has_ended_before_it_joined", c.rank))
	}
	s.mu.Unlock()
	if lost {
		s.gone(c.rank)
	}
}

// serve responds to one line and reports whether to continue.
func (c *session) serve(lines *bufio.Scanner) bool {
	m, err := parse(lines.Text())
	if err != nil {
		return false
	}
	if m["cmd"] == blameCommand {
		// A blame may overtake the rank's finalize, or be overtaken by it.
		return c.recordBlame(m)
	}
	if begins := m["cmd"] == "init"; begins != (c.job == nil) {
		return false
	}
	switch s := c.server; m["cmd"] {
	case "init":
		c.begin()
		return c.respond("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0 %s=%s", blameField, blameVersion)
	case "get_maxes":
		return c.respond("cmd=maxes kvsname_max=256 keylen_max=%d vallen_max=%d", longestKey+1, longestValue)
	case "get_appnum":
		return c.respond("cmd=appnum appnum=0")
	case "get_my_kvsname":
		return c.respond("cmd=my_kvsname kvsname=%s", c.job.name)
	case "get_universe_size":
		return c.respond("cmd=universe_size size=%d", s.size)
	case "put":
		return c.put(m)
	case "get":
		s.mu.Lock()
		value, ok := c.job.values[m["key"]]
		s.mu.Unlock()
		if !ok || m["kvsname"] != c.job.name {
			return c.respond("cmd=get_result rc=-1 msg=key_not_found value=unknown")
		}
		return c.respond("cmd=get_result rc=0 msg=success value=%s", value)
	case "barrier_in":
		return c.enter()
	case "finalize":
		c.finalize()
		return c.respond("cmd=finalize_ack")
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

// recordBlame records the rank that this rank blames, and reports whether it is valid.
func (c *session) recordBlame(m message) bool {
	blamed, err := strconv.Atoi(m["rank"])
	left, e := strconv.ParseBool(m["left"])
	if err != nil || e != nil || blamed < NoRank || blamed >= c.server.size {
		return false
	}
	if m["joined"] == "false" {
		c.server.notJoined(c.rank)
	}
	c.blame(blamed, left)
	return true
}

func (c *session) blame(blamed int, left bool) {
	c.blames = blamed != NoRank
	c.server.blame(c.rank, blamed, left)
}

// begin puts the rank into the next job.
func (c *session) begin() {
	if c.blames {
		c.blame(NoRank, false)
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.job = c.server.job(c.begun)
	c.begun++
	c.puts = 0
}

// enter puts the rank into its job's barrier, and responds if that completes it. A rank can be in the barrier once.
// The response precedes those to the rank's next requests.
func (c *session) enter() bool {
	s, j := c.server, c.job
	s.mu.Lock()
	_, twice := j.inside[c.rank]
	how := ""
	switch {
	case twice:
	case j.ended != "":
		how = "rc=-1 msg=" + j.ended
	case len(j.inside) == s.size-1:
		how = "rc=0"
		j.publish()
		j.release(how)
	default:
		j.inside[c.rank] = c
	}
	s.mu.Unlock()
	return !twice && (how == "" || c.respond("cmd=barrier_out %s", how))
}

// finalize removes the rank from its job.
func (c *session) finalize() {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	c.job.end(fmt.Sprintf("rank_%d_has_finalized", c.rank))
	if c.job.finalized++; c.job.finalized == s.size {
		delete(s.jobs, c.begun-1)
	}
	c.job = nil
}

func (c *session) put(m message) bool {
	key, value := m["key"], m["value"]
	c.puts++
	if m["kvsname"] != c.job.name || key == "" || len(key) > longestKey || len(value) > longestValue || c.puts > MaxValues {
		return c.respond("cmd=put_result rc=-1 msg=rejected")
	}
	c.server.mu.Lock()
	c.job.pending[key] = value
	c.server.mu.Unlock()
	return c.respond("cmd=put_result rc=0 msg=success")
}

// The callers of a job's methods hold the server's mutex.

// publish makes pending puts visible.
func (j *job) publish() {
	maps.Copy(j.values, j.pending)
	clear(j.pending)
}

// end ends a barrier that cannot complete.
func (j *job) end(why string) {
	if j.ended == "" {
		j.ended = why
	}
	j.release("rc=-1 msg=" + j.ended)
}

// release responds to the ranks in the barrier.
func (j *job) release(how string) {
	for rank, c := range j.inside {
		c.server.serving.Go(func() { c.respond("cmd=barrier_out %s", how) })
		delete(j.inside, rank)
	}
}

func (c *session) respond(format string, args ...any) bool {
	// A rank that does not read its responses must not delay the others.
	_ = c.conn.SetWriteDeadline(time.Now().Add(responseTime))
	_, err := io.WriteString(c.conn, fmt.Sprintf(format, args...)+"\n")
	return err == nil
}

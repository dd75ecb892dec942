package launchtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onesided/rma/internal/await"
)

const (
	// unprivileged is the user, nobody, as which a Slurm runs if the test runs as root.
	unprivileged = 65534
	// startLimit ends a Slurm whose nodes do not become ready.
	startLimit = time.Minute
	// attempts is the number of attempts to start one: another process may take a port that was free.
	attempts = 3
	// mostNodes is the greatest number of virtual nodes on one machine.
	mostNodes = 64
)

// A Cluster is a Slurm with virtual nodes n1, n2, … on this machine, for one test or several. The nodes have the
// machine's name, network and memory. SLURM_NODEID distinguishes them.
type Cluster struct {
	t     testing.TB
	srun  string
	sinfo string
	nodes int
	// dir has the configuration and state. The supervisor removes it.
	dir string
	// daemons are the controller and the nodes, under one supervisor: all end with the first.
	daemons *supervisedCommand
	ended   chan struct{}
	log     *log
	// held is nil, or a file that the supervisor has open as long as the cluster exists.
	held *os.File
}

// Slurm starts a controller and nodes, and ends them with the test. The test is skipped if Slurm is not installed. If
// it is installed but does not start, the test is skipped if this user or machine may be the cause, and fails otherwise.
func Slurm(t testing.TB, nodes int) *Cluster {
	t.Helper()
	c, err := startSlurm(t, nodes, nil)
	if err != nil {
		giveUp(t, err)
	}
	t.Cleanup(c.daemons.finish)
	return c
}

// shared are the clusters of SharedSlurm, by their number of nodes.
var shared struct {
	sync.Mutex
	clusters map[int]*sharedCluster
}

// A sharedCluster is a cluster, or the error of its start.
type sharedCluster struct {
	*Cluster
	err error
}

// SharedSlurm is like Slurm, for tests whose jobs leave nothing behind. Tests of one process that ask for the same
// number of nodes share a cluster. It is started for the first and ends with the process. The tests may run at the
// same time.
func SharedSlurm(t testing.TB, nodes int) *Cluster {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.clusters == nil {
		shared.clusters = make(map[int]*sharedCluster)
	}
	s := shared.clusters[nodes]
	if s == nil || s.err == nil && s.hasEnded() {
		s = &sharedCluster{}
		s.Cluster, s.err = startSlurm(t, nodes, os.Stderr)
		shared.clusters[nodes] = s
	}
	if s.err != nil {
		giveUp(t, s.err)
	}
	of := *s.Cluster
	of.t = t
	return &of
}

// startSlurm starts a cluster that the caller must end. held, if not nil, is a file whose readers see its end at the
// end of the cluster. The test is skipped if Slurm is not installed.
func startSlurm(t testing.TB, nodes int, held *os.File) (*Cluster, error) {
	t.Helper()
	if nodes < 1 || nodes > mostNodes {
		t.Fatalf("launchtest: Slurm of %d nodes: from 1 to %d are possible", nodes, mostNodes)
	}
	paths := need(t, "srun", "sinfo", "slurmctld", "slurmd")
	var failed error
	for range attempts {
		c := &Cluster{t: t, srun: paths[0], sinfo: paths[1], nodes: nodes, held: held, log: &log{}}
		err := c.start(paths[2], paths[3])
		if err == nil {
			return c, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// giveUp ends a test whose Slurm has not started.
func giveUp(t testing.TB, err error) {
	t.Helper()
	if why := excuse(os.Geteuid(), find, becomesUnprivileged); why != "" {
		t.Skipf("skipped: Slurm is installed but does not start, perhaps because %s: %v", why, err)
	}
	t.Fatalf("launchtest: Slurm is installed but does not start: %v", err)
}

// excuse returns why a Slurm may fail to start although this package and its configuration are right, or "". Root has
// none where all of Slurm and munge is installed. Continuous integration is such a machine: if a failing start skipped the
// tests there, all tests under Slurm could be off unnoticed. Where only some programs of Slurm are installed, need has
// skipped the test.
func excuse(user int, find func(program string) (string, error), becomesUnprivileged func() error) string {
	if user != 0 {
		return "the system lets no ordinary user start it"
	}
	if _, err := find("munged"); err != nil {
		return "munge is not installed, and this Slurm has no authentication without it"
	}
	if err := becomesUnprivileged(); err != nil {
		return fmt.Sprintf("root cannot start it as user %d here: %v", unprivileged, err)
	}
	return ""
}

// becomesUnprivileged returns an error if this process, as root, cannot start processes of the user as which Slurm
// runs. A container may have no such user, or root no such right.
func becomesUnprivileged() error {
	k, err := supervise(context.Background(), supervisorConfig{Limit: Limit, User: unprivileged}, "true")
	if err != nil {
		return err
	}
	defer k.finish()
	output, err := k.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}

// slurmUser returns the user as which daemons and jobs run, or 0 for the present one.
func slurmUser() int {
	if os.Geteuid() == 0 {
		return unprivileged
	}
	return 0
}

// start starts the daemons and returns when all nodes are ready. If it fails, it has ended them.
func (c *Cluster) start(slurmctld, slurmd string) (err error) {
	if c.dir, err = directory(); err != nil {
		return err
	}
	// Once started, the supervisor owns the directory.
	held := false
	defer func() {
		if !held {
			err = errors.Join(err, os.RemoveAll(c.dir))
		}
	}()
	ports, err := freePorts(1 + c.nodes)
	if err != nil {
		return err
	}
	// A node that finds no controller registers a second later.
	o, socket := supervisorConfig{User: slurmUser(), Remove: c.dir, Listens: fmt.Sprintf("127.0.0.1:%d", ports[0])}, ""
	if munged, err := find("munged"); err == nil {
		command, err := munge(munged, c.dir)
		if err != nil {
			return err
		}
		o.Beside, socket = append(o.Beside, command), mungeSocket(c.dir)
	}
	conf, err := configure(c.dir, socket, ports[0], ports[1:])
	if err != nil {
		return err
	}
	for n := range c.nodes {
		o.Later = append(o.Later, []string{slurmd, "-D", "-N", nodeName(n), "-f", conf})
	}
	if c.daemons, err = supervise(context.Background(), o, slurmctld, "-D", "-c", "-f", conf); err != nil {
		return err
	}
	c.daemons.Dir, c.daemons.Stdout, c.daemons.Stderr = c.dir, c.log, c.log
	if c.held != nil {
		c.daemons.ExtraFiles = append(c.daemons.ExtraFiles, c.held)
	}
	if err := c.daemons.Start(); err != nil {
		c.daemons.finish()
		return fmt.Errorf("launchtest: starting Slurm: %w", err)
	}
	held = true
	c.ended = make(chan struct{})
	go func() {
		_ = c.daemons.Wait()
		close(c.ended)
	}()
	if err := c.ready(o.Listens); err != nil {
		c.daemons.finish()
		return err
	}
	return nil
}

// ready returns when every node is idle and has run a job.
func (c *Cluster) ready(controller string) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), startLimit)
	defer cancel()
	// A client that finds no controller tries again a second later.
	if err := c.until(ctx, "the controller to listen", func() bool { return listens(controller) }); err != nil {
		return err
	}
	if err := c.until(ctx, fmt.Sprintf("%d nodes to be ready", c.nodes), func() bool {
		// An error here shows in the following job.
		output, _ := c.ask(ctx, c.sinfo, "-h", "-N", "-t", "idle", "-o", "%N")
		return len(strings.Fields(output)) == c.nodes
	}); err != nil {
		return err
	}
	nodes := strconv.Itoa(c.nodes)
	if _, err := c.ask(ctx, c.srun, "-N", nodes, "-n", nodes, "true"); err != nil {
		return fmt.Errorf("launchtest: the nodes are ready, but a first job fails: %w\n%s", err, c.log.end())
	}
	return nil
}

// until returns when state returns true, or an error if a daemon ends before.
func (c *Cluster) until(ctx context.Context, what string, state func() bool) error {
	ended := false
	err := await.Until(ctx, what, func() bool {
		ended = c.hasEnded()
		return ended || state()
	})
	switch {
	case ended:
		return fmt.Errorf("launchtest: a daemon has ended: %v\n%s", c.daemons.ProcessState, c.log.end())
	case err != nil:
		return fmt.Errorf("launchtest: %w\n%s", err, c.log.end())
	}
	return nil
}

func (c *Cluster) hasEnded() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// listens reports whether a process listens at an address.
func listens(address string) bool {
	connection, err := net.Dial("tcp4", address)
	return err == nil && connection.Close() == nil
}

// ask runs a command that talks to the controller, and ends all its processes. It returns the command's output. The
// error contains its standard error.
func (c *Cluster) ask(ctx context.Context, command ...string) (string, error) {
	k, err := supervise(ctx, supervisorConfig{Limit: Limit, User: slurmUser()}, command...)
	if err != nil {
		return "", err
	}
	defer k.finish()
	var errout bytes.Buffer
	k.Stderr = &errout
	output, err := c.client(k).Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(errout.Bytes()))
	}
	return string(output), err
}

// A log is the output of the daemons.
type log struct {
	mu   sync.Mutex
	text []byte
}

func (l *log) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, text...)
	return len(text), nil
}

// end returns the last part of the log, which explains a failure.
func (l *log) end() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text[max(0, len(l.text)-4<<10):])
}

// client adds the place of the controller to the environment of a command.
func (c *Cluster) client(k *supervisedCommand) *exec.Cmd {
	k.Env = append(k.Env, "SLURM_CONF="+confPath(c.dir))
	k.Dir = c.dir
	return k.Cmd
}

// Command returns a command that runs srun with arguments, which include the program and its arguments. It ends with
// ctx, with the cluster, or after Limit. Ranks may write to its directory.
//
// Slurm does not tell the ranks when one dies, and lets them wait. With -K (--kill-on-bad-exit) it ends them.
func (c *Cluster) Command(ctx context.Context, arguments ...string) *exec.Cmd {
	o := supervisorConfig{Limit: Limit, User: slurmUser()}
	return c.client(newCommand(ctx, c.t, o, append([]string{c.srun}, arguments...)...))
}

// Run runs srun with arguments and returns the output of the ranks. It fails the test unless the exit status is 0.
func (c *Cluster) Run(t testing.TB, arguments ...string) string {
	t.Helper()
	command := c.Command(t.Context(), arguments...)
	var out, errout bytes.Buffer
	command.Stdout, command.Stderr = &out, &errout
	if err := command.Run(); err != nil {
		t.Fatalf("launchtest: srun %s: %v\n%s%s%s", strings.Join(arguments, " "), err, out.Bytes(), errout.Bytes(), c.log.end())
	}
	return out.String()
}

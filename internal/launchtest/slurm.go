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
	// unprivileged is the user that a Slurm runs as if the test runs as root: nobody.
	unprivileged = 65534
	// startLimit ends a Slurm of which a node does not become ready.
	startLimit = time.Minute
	// attempts to start one: a port that was free can have been taken.
	attempts = 3
	// mostNodes is what one machine can be asked to play.
	mostNodes = 64
)

// A Cluster is a Slurm with virtual nodes n1, n2, … on this machine, for one test or several. The nodes
// have the machine's name, network and memory; SLURM_NODEID tells them apart.
type Cluster struct {
	t     testing.TB
	srun  string
	sinfo string
	nodes int
	// dir has the configuration and state; the keeper removes it.
	dir string
	// daemons are the controller and the nodes, under one keeper: all end with the first.
	daemons *kept
	ended   chan struct{}
	log     *log
	// held is nil or a file that the keeper has open as long as there is the cluster.
	held *os.File
}

// Slurm starts a controller and nodes, and ends them with the test. The test is skipped where
// Slurm is not installed or does not start.
func Slurm(t testing.TB, nodes int) *Cluster {
	t.Helper()
	c, err := startSlurm(t, nodes, nil)
	if err != nil {
		t.Skipf("%v", err)
	}
	t.Cleanup(c.daemons.finish)
	return c
}

// shared are the clusters of SharedSlurm, by their number of nodes.
var shared struct {
	sync.Mutex
	clusters map[int]*sharedCluster
}

// A sharedCluster is a cluster, or why there is none.
type sharedCluster struct {
	*Cluster
	err error
}

// SharedSlurm is Slurm for tests whose jobs leave nothing behind: those of one process that ask for as many nodes have
// one cluster, which is started for the first and ends with the process. They may run at the same time.
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
		t.Skipf("%v", s.err)
	}
	of := *s.Cluster
	of.t = t
	return &of
}

// startSlurm starts a cluster that the caller ends. Who reads held to its end, if it is not nil, waits for the end of
// the cluster. The test is skipped where Slurm is not installed; an error says why it is to be skipped.
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
	return nil, fmt.Errorf("skipped: Slurm is installed but does not start: %w", failed)
}

// slurmUser is the user that daemons and jobs run as, if that is another.
func slurmUser() int {
	if os.Geteuid() == 0 {
		return unprivileged
	}
	return 0
}

// start starts the daemons and returns when all nodes are ready. If it fails, it
// has ended them.
func (c *Cluster) start(slurmctld, slurmd string) (err error) {
	if c.dir, err = directory(); err != nil {
		return err
	}
	// The keeper has it from when it has started.
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
	o, socket := orders{User: slurmUser(), Remove: c.dir, Listens: fmt.Sprintf("127.0.0.1:%d", ports[0])}, ""
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
	if c.daemons, err = keep(context.Background(), o, slurmctld, "-D", "-c", "-f", conf); err != nil {
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

// ready returns when every node waits for work, and has done some.
func (c *Cluster) ready(controller string) error {
	ctx, cancel := context.WithTimeout(c.t.Context(), startLimit)
	defer cancel()
	// A client that finds no controller tries again a second later.
	if err := c.until(ctx, "the controller to listen", func() bool { return listens(controller) }); err != nil {
		return err
	}
	if err := c.until(ctx, fmt.Sprintf("%d nodes to be ready", c.nodes), func() bool {
		// What goes wrong here a job will tell.
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

// until returns when state does, or an error if a daemon ends before.
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

// ask runs a command that talks to the controller, and leaves nothing of it. It returns what
// the command prints; what that says of errors is in the error.
func (c *Cluster) ask(ctx context.Context, command ...string) (string, error) {
	k, err := keep(ctx, orders{Limit: Limit, User: slurmUser()}, command...)
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

// A log is what the daemons have printed.
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

// end is the last of it, which is what matters of a failure.
func (l *log) end() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text[max(0, len(l.text)-4<<10):])
}

// client tells a command where the controller is.
func (c *Cluster) client(k *kept) *exec.Cmd {
	k.Env = append(k.Env, "SLURM_CONF="+confPath(c.dir))
	k.Dir = c.dir
	return k.Cmd
}

// Command makes a command that runs srun with arguments, among them the program and its own.
// It ends with ctx, with the cluster, or after Limit. Its directory is one that ranks may write to.
//
// Slurm does not tell the ranks of the death of one, and lets them wait, unless it is
// asked to end them by -K (--kill-on-bad-exit).
func (c *Cluster) Command(ctx context.Context, arguments ...string) *exec.Cmd {
	o := orders{Limit: Limit, User: slurmUser()}
	return c.client(newCommand(ctx, c.t, o, append([]string{c.srun}, arguments...)...))
}

// Run runs srun with arguments and returns what the ranks have printed. It fails the
// test unless the exit status is 0.
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

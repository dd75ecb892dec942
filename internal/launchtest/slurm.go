package launchtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// unprivileged is who a Slurm runs as if the test runs as root: nobody.
	unprivileged = 65534
	// startLimit bounds the time until all nodes of a Slurm are ready.
	startLimit = 20 * time.Second
	// attempts to start one: a port that was free can have been taken.
	attempts = 3
	// mostNodes is what one machine can be asked to play.
	mostNodes = 64
)

// A Cluster is a Slurm with virtual nodes n1, n2, … on this machine, for one test. The nodes
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
	log     log
}

// Slurm starts a controller and nodes, and ends them with the test. The test is skipped where
// Slurm is not installed or does not start.
func Slurm(t testing.TB, nodes int) *Cluster {
	t.Helper()
	if nodes < 1 || nodes > mostNodes {
		t.Fatalf("launchtest: Slurm of %d nodes: from 1 to %d are possible", nodes, mostNodes)
	}
	paths := need(t, "srun", "sinfo", "slurmctld", "slurmd")
	var failed error
	for range attempts {
		c := &Cluster{t: t, srun: paths[0], sinfo: paths[1], nodes: nodes}
		err := c.start(paths[2], paths[3])
		if err == nil {
			return c
		}
		failed = errors.Join(failed, err)
	}
	t.Skipf("skipped: Slurm is installed but does not start: %v", failed)
	return nil
}

// slurmUser is whom daemons and jobs run as if that is somebody else.
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
	o, socket := orders{User: slurmUser(), Remove: c.dir}, ""
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
		o.Beside = append(o.Beside, []string{slurmd, "-D", "-N", nodeName(n), "-f", conf})
	}
	if c.daemons, err = keep(context.Background(), o, slurmctld, "-D", "-c", "-f", conf); err != nil {
		return err
	}
	c.t.Cleanup(c.daemons.finish)
	c.daemons.Dir, c.daemons.Stdout, c.daemons.Stderr = c.dir, &c.log, &c.log
	if err := c.daemons.Start(); err != nil {
		return fmt.Errorf("launchtest: starting Slurm: %w", err)
	}
	held = true
	c.ended = make(chan struct{})
	go func() {
		_ = c.daemons.Wait()
		close(c.ended)
	}()
	if err := c.ready(); err != nil {
		c.daemons.finish()
		return err
	}
	return nil
}

// ready returns when every node waits for work, and has done some.
func (c *Cluster) ready() error {
	ctx, cancel := context.WithTimeout(c.t.Context(), startLimit)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		// It fails until the controller listens.
		output, _ := c.ask(ctx, c.sinfo, "-h", "-N", "-t", "idle", "-o", "%N")
		ready := len(strings.Fields(output))
		if ready == c.nodes {
			break
		}
		select {
		case <-again.C:
		case <-c.ended:
			return fmt.Errorf("launchtest: a daemon has ended: %v\n%s", c.daemons.ProcessState, c.log.end())
		case <-ctx.Done():
			return fmt.Errorf("launchtest: %d of %d nodes are ready after %v\n%s", ready, c.nodes, startLimit, c.log.end())
		}
	}
	nodes := strconv.Itoa(c.nodes)
	if _, err := c.ask(ctx, c.srun, "-N", nodes, "-n", nodes, "true"); err != nil {
		return fmt.Errorf("launchtest: the nodes are ready, but a first job fails: %w\n%s", err, c.log.end())
	}
	return nil
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

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/launchtest"
	"github.com/onesided/rma/internal/nettest"
)

// hosts is the number of network namespaces. A job has one rank or more on each.
const hosts = 3

// A crew is a job across hosts without a process manager. Rank i is on host i % hosts.
type crew struct {
	t       *testing.T
	network *nettest.Network
	ranks   []*process
	// environment and key are for all ranks.
	environment []string
	key         string
	program     []string
	// arguments are added for each rank.
	arguments func(rank int) []string
}

// A process is a rank.
type process struct {
	*exec.Cmd
	input io.WriteCloser
	out   bytes.Buffer
	// ended is closed when the process has ended. err is set before that.
	ended chan struct{}
	err   error

	mu sync.Mutex
	// errout has the lines that the process has printed to standard error. inside and failed are closed when insideLine
	// and failedLine are among them.
	errout         []string
	inside, failed chan struct{}
}

// rootPort is the port of RMA_ROOT. No other program listens on the host of rank 0.
const rootPort = 7000

// newCrew prepares a job of n ranks of a program on a network of its own.
func newCrew(t *testing.T, n int, environment []string, program ...string) *crew {
	t.Helper()
	return &crew{
		t: t, network: nettest.New(t, hosts), ranks: make([]*process, n),
		environment: environment, key: launchtest.KeyFile(t), program: program, arguments: func(int) []string { return nil },
	}
}

// role prepares a job whose ranks are processes of this binary.
func role(t *testing.T, n int, name string, arguments ...string) *crew {
	t.Helper()
	return newCrew(t, n, as(name), append([]string{launchtest.Self(t)}, arguments...)...)
}

// startAll starts the ranks in the given order.
func (c *crew) startAll(order ...int) {
	c.t.Helper()
	for _, rank := range order {
		c.start(rank)
	}
}

// inOrder returns all ranks.
func (c *crew) inOrder() []int {
	all := make([]int, len(c.ranks))
	for rank := range all {
		all[rank] = rank
	}
	return all
}

func (c *crew) start(rank int) {
	c.t.Helper()
	arguments := slices.Concat(c.program[1:], c.arguments(rank))
	p := &process{
		Cmd:   c.network.Command(hostOf(rank), c.program[0], arguments...),
		ended: make(chan struct{}), inside: make(chan struct{}), failed: make(chan struct{}),
	}
	c.ranks[rank] = p
	p.Env = append(withoutManager(), "RMA_DEVICE=", "RMA_HOST=", "RMA_ADDRESS=",
		fmt.Sprintf("RMA_ROOT=%v:%d", c.network.Address(0), rootPort), "RMA_RANK="+strconv.Itoa(rank), "RMA_SIZE="+strconv.Itoa(len(c.ranks)), "RMA_KEY_FILE="+c.key)
	p.Env = append(p.Env, c.environment...)
	p.Stdout = &p.out
	var err error
	p.input, err = p.StdinPipe()
	require.NoError(c.t, err)
	errout, err := p.StderrPipe()
	require.NoError(c.t, err)
	require.NoError(c.t, p.Start())
	go p.follow(errout)
}

// follow reads the standard error of a rank until its process has ended.
func (p *process) follow(errout io.Reader) {
	for lines := bufio.NewScanner(errout); lines.Scan(); {
		p.mu.Lock()
		p.errout = append(p.errout, lines.Text())
		p.mu.Unlock()
		switch lines.Text() {
		case insideLine:
			close(p.inside)
		case failedLine:
			close(p.failed)
		}
	}
	p.err = p.Wait()
	close(p.ended)
}

// said returns what a rank has printed to standard error.
func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.errout, "\n")
}

// await returns when a rank has reached a state. After a time limit it makes all ranks print their goroutines, and
// fails the test.
func (c *crew) await(rank int, what string, happened <-chan struct{}) {
	c.t.Helper()
	p := c.ranks[rank]
	ctx, cancel := context.WithTimeout(c.t.Context(), await.Limit)
	defer cancel()
	select {
	case <-happened:
		return
	case <-p.ended:
	case <-ctx.Done():
		for _, p := range c.ranks {
			_ = p.Process.Signal(syscall.SIGQUIT)
		}
		for rank, p := range c.ranks {
			<-p.ended
			c.t.Logf("rank %d: %v\n%s", rank, p.err, p.said())
		}
		c.t.Fatalf("waited in vain for rank %d %s", rank, what)
	}
	select {
	case <-happened:
	default:
		c.t.Fatalf("waiting for rank %d %s: %v\n%s%s", rank, what, p.err, &p.out, p.said())
	}
}

// all returns when all ranks have reported a point.
func (c *crew) all(what string, point func(*process) <-chan struct{}) {
	c.t.Helper()
	for rank, p := range c.ranks {
		c.await(rank, what, point(p))
	}
}

func inside(p *process) <-chan struct{} { return p.inside }
func failed(p *process) <-chan struct{} { return p.failed }

// wait returns the error with which a rank's process ended.
func (c *crew) wait(rank int) error {
	c.t.Helper()
	c.await(rank, "at its end", c.ranks[rank].ended)
	return c.ranks[rank].err
}

// succeed returns when the given ranks have ended without an error.
func (c *crew) succeed(ranks ...int) {
	c.t.Helper()
	for _, rank := range ranks {
		require.NoError(c.t, c.wait(rank), "rank %d: %s", rank, c.ranks[rank].said())
	}
}

// hostOf returns the host of a rank.
func hostOf(rank int) int { return rank % hosts }

// elsewhere returns the ranks that are not on a host.
func (c *crew) elsewhere(host int) []int {
	return slices.DeleteFunc(c.inOrder(), func(rank int) bool { return hostOf(rank) == host })
}

// on returns the ranks of a host.
func (c *crew) on(host int) []int {
	return slices.DeleteFunc(c.inOrder(), func(rank int) bool { return hostOf(rank) != host })
}

// lost checks which ranks a rank has reported as lost.
func (c *crew) lost(rank int, want ...int) {
	c.t.Helper()
	var got []int
	for line := range strings.Lines(c.ranks[rank].said()) {
		var other int
		if n, _ := fmt.Sscanf(line, lostFormat, &other); n == 1 {
			got = append(got, other)
		}
	}
	slices.Sort(got)
	require.Equal(c.t, want, got, "lost by rank %d: %s", rank, c.ranks[rank].said())
}

package pmi

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/errtext"
)

// A Client is a rank's side of the protocol. Its methods may be called from any goroutine.
type Client struct {
	rank, size int
	kvs        string

	// kept is set if Finalize leaves the connection open for another Init.
	kept bool
	// blames is set if the manager accepts Blame.
	blames bool
	// finalizing is the Finalize for which a FinalizeContext waits, or has stopped waiting.
	finalizing atomic.Pointer[finalizing]

	mu     sync.Mutex
	conn   conn
	lines  *bufio.Scanner
	broken error
	// requests counts the requests, begun the jobs of this connection, and finalized those of them that this rank has
	// finalized.
	requests, begun, finalized int
}

type conn interface {
	Read([]byte) (int, error)
	Write([]byte) (int, error)
	Close() error
	SetDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// responseTime bounds the time for every response but that of a barrier.
const responseTime = 30 * time.Second

func number(name string, least int) (int, error) {
	text := os.Getenv(name)
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		return 0, fmt.Errorf("%w: %s=%q, must be a number of at least %d", ErrEnvironment, name, text, least)
	}
	return n, nil
}

// fromPort connects as Hydra's -pmi-port requires.
func fromPort(port string) (*Client, error) {
	id, err := number("PMI_ID", 0)
	if err != nil {
		return nil, err
	}
	c, err := net.DialTimeout("tcp", port, responseTime)
	if err != nil {
		return nil, fmt.Errorf("%w: PMI_PORT=%s: %w", ErrEnvironment, port, err)
	}
	client := newClient(c, 0, 0)
	if err := client.introduce(id); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return client.begin()
}

// introduce asks the manager for the size and the rank of id.
func (c *Client) introduce(id int) error {
	response, err := c.request(context.Background(), fmt.Sprintf("cmd=initack pmiid=%d", id), "initack")
	if err != nil {
		return err
	}
	if !response.ok() {
		return fmt.Errorf("%w: initack of PMI_ID %d", ErrRejected, id)
	}
	c.rank, c.size = -1, -1
	for range 3 {
		m, err := c.read("set")
		if err != nil {
			return err
		}
		for name, into := range map[string]*int{"size": &c.size, "rank": &c.rank} {
			if text, ok := m[name]; ok {
				if *into, err = strconv.Atoi(text); err != nil {
					return fmt.Errorf("%w: %s=%q", ErrProtocol, name, text)
				}
			}
		}
	}
	if c.rank < 0 || c.rank >= c.size {
		return fmt.Errorf("%w: rank %d of %d", ErrProtocol, c.rank, c.size)
	}
	return nil
}

// New starts the protocol on a connection to a manager, for a rank of a job of size ranks.
func New(conn conn, rank, size int) (*Client, error) {
	return newClient(conn, rank, size).begin()
}

func newClient(conn conn, rank, size int) *Client {
	return &Client{rank: rank, size: size, conn: conn, lines: newReader(conn), begun: 1}
}

// begin starts the protocol, or closes the connection.
func (c *Client) begin() (*Client, error) {
	if err := c.start(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// start begins a job on the connection. After an error the connection cannot be used again.
func (c *Client) start() (err error) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.broken = cmp.Or(c.broken, err)
	}()
	response, err := c.request(context.Background(), "cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")
	if err != nil {
		return err
	}
	if !response.ok() || response["pmi_version"] != "1" {
		return fmt.Errorf("%w: version 1 is wanted, the manager has %q", ErrRejected, response["pmi_version"])
	}
	c.blames = response[blameField] == blameVersion
	if response, err = c.request(context.Background(), "cmd=get_my_kvsname", "my_kvsname"); err != nil {
		return err
	}
	c.kvs = response["kvsname"]
	if c.kvs == "" {
		return fmt.Errorf("%w: the manager names no key-value space", ErrProtocol)
	}
	return nil
}

// Rank returns the rank of this process.
func (c *Client) Rank() int { return c.rank }

// Size returns the number of ranks.
func (c *Client) Size() int { return c.size }

// Put makes value visible to every rank under key after the next Barrier. A rank may put a key once.
func (c *Client) Put(key, value string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	if len(value) == 0 || len(value) > MaxValue {
		return fmt.Errorf("%w: value of %q has %s, allowed are 1 to %d", ErrArgument, key, errtext.Count(len(value), "byte"), MaxValue)
	}
	if err := checkPrintable("value of "+key, value, ""); err != nil {
		return err
	}
	parts := (len(value) + maxPart - 1) / maxPart
	for part := range parts {
		text := value[part*maxPart : min(len(value), (part+1)*maxPart)]
		if part == 0 {
			text = fmt.Sprintf("%d:%s", parts, text)
		}
		response, err := c.request(context.Background(), fmt.Sprintf("cmd=put kvsname=%s key=%s value=%s", c.kvs, partKey(key, part), text), "put_result")
		if err != nil {
			return err
		}
		if !response.ok() {
			return fmt.Errorf("%w: put of %q: %s", ErrRejected, key, response["msg"])
		}
	}
	return nil
}

func partKey(key string, part int) string {
	if part == 0 {
		return key
	}
	return fmt.Sprintf("%s.%d", key, part)
}

// Get returns the value of key, or ErrNotFound if there is none.
func (c *Client) Get(key string) (string, error) {
	if err := checkKey(key); err != nil {
		return "", err
	}
	first, err := c.get(key)
	if err != nil {
		return "", err
	}
	parts, value := 0, ""
	if _, err := fmt.Sscanf(first, "%d:%s", &parts, &value); err != nil || parts < 1 || parts > MaxValue/maxPart+1 {
		return "", fmt.Errorf("%w: value %.80q of %q was not put by this package", ErrProtocol, first, key)
	}
	for part := 1; part < parts; part++ {
		text, err := c.get(partKey(key, part))
		if err != nil {
			return "", err
		}
		value += text
	}
	return value, nil
}

func (c *Client) get(key string) (string, error) {
	response, err := c.request(context.Background(), fmt.Sprintf("cmd=get kvsname=%s key=%s", c.kvs, key), "get_result")
	if err != nil {
		return "", err
	}
	if !response.ok() {
		return "", fmt.Errorf("%w: %q", ErrNotFound, key)
	}
	return response["value"], nil
}

// Barrier returns when every rank has called it. If ctx ends first, the client cannot be used again: the protocol
// cannot cancel a barrier.
func (c *Client) Barrier(ctx context.Context) error {
	response, err := c.request(ctx, "cmd=barrier_in", "barrier_out")
	if err != nil {
		return err
	}
	if !response.ok() {
		why := "a rank has ended"
		if msg := response["msg"]; msg != "" {
			why = strings.ReplaceAll(msg, "_", " ")
		}
		return fmt.Errorf("%w: barrier: %s", ErrRejected, why)
	}
	return nil
}

// Finalize reports to the manager that this rank may end. It closes the connection, unless the process inherited it. In
// that case [FromEnvironment] asks the manager whether it serves another job of the same ranks.
func (c *Client) Finalize() error {
	_, err := c.request(context.Background(), "cmd=finalize", "finalize_ack")
	if err != nil || !c.kept {
		return errors.Join(err, c.Close())
	}
	return nil
}

// FinalizeContext is like Finalize, and waits for the manager only while ctx lasts. If ctx ends first, the error wraps
// ctx's. The manager has received the request by then, and another FinalizeContext continues to wait for its response.
func (c *Client) FinalizeContext(ctx context.Context) error {
	f := &finalizing{done: make(chan struct{})}
	if c.finalizing.CompareAndSwap(nil, f) {
		go func() {
			defer close(f.done)
			f.err = c.Finalize()
		}()
	} else {
		f = c.finalizing.Load()
	}
	select {
	case <-f.done:
		c.finalizing.Store(nil)
		return f.err
	case <-ctx.Done():
		return fmt.Errorf("pmi: %w: the process manager has not answered that this rank may end", errtext.Ended(ctx))
	}
}

// A finalizing is a Finalize in its own goroutine. err is set before done is closed.
type finalizing struct {
	done chan struct{}
	err  error
}

// Abort asks the manager to end the job with an exit status.
func (c *Client) Abort(status int) error { return c.send(fmt.Sprintf("cmd=abort exitcode=%d", status)) }

// Blame reports to the manager that a rank has failed, or has left while this one needed it. That may be the reason if
// this rank fails, too. The last call counts. With [NoRank] this rank continues without the rank that it has blamed.
// Blame only reaches a [Server]: other managers do not know the message.
func (c *Client) Blame(rank int, left bool) error { return c.blame(rank, left, "") }

// NotJoined is the Blame of a rank that could not join its job because rank has failed: this rank itself, or another.
func (c *Client) NotJoined(rank int) error { return c.blame(rank, false, " "+notJoinedField) }

func (c *Client) blame(rank int, left bool, more string) error {
	if !c.blames {
		return nil
	}
	return c.send(fmt.Sprintf("cmd=%s rank=%d left=%t%s", blameCommand, rank, left, more))
}

// send writes a message that has no response. It does not wait for a request in progress, because a barrier may last
// forever. Each line is written whole, whatever other goroutines write.
func (c *Client) send(line string) error {
	err := c.conn.SetWriteDeadline(time.Now().Add(responseTime))
	if err == nil {
		_, err = io.WriteString(c.conn, line+"\n")
	}
	if err != nil {
		return fmt.Errorf("pmi: %w", err)
	}
	return nil
}

// Close closes the connection without Finalize, which managers take for a failure.
func (c *Client) Close() error {
	err := c.conn.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// request writes the line of a request at once, and waits for the response named want.
func (c *Client) request(ctx context.Context, line, want string) (message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return nil, c.broken
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("pmi: %s: %w", want, context.Cause(ctx))
	}
	c.requests++
	deadline := time.Now().Add(responseTime)
	if want == "barrier_out" {
		deadline = time.Time{}
	}
	if err := c.conn.SetDeadline(deadline); err != nil {
		return nil, fmt.Errorf("pmi: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	response, err := c.exchange(line, want)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		c.broken = fmt.Errorf("pmi: %s: %w", want, cause{err})
		return nil, c.broken
	}
	if want == "finalize_ack" {
		c.finalized = c.begun
	}
	return response, nil
}

func (c *Client) exchange(line, want string) (message, error) {
	if _, err := c.conn.Write([]byte(line + "\n")); err != nil {
		return nil, err
	}
	return c.read(want)
}

func (c *Client) read(want string) (message, error) {
	if !c.lines.Scan() {
		if err := c.lines.Err(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: the manager closed the connection", ErrProtocol)
	}
	m, err := parse(c.lines.Text())
	if err != nil {
		return nil, err
	}
	if m["cmd"] != want {
		return nil, fmt.Errorf("%w: %s instead of %s", ErrProtocol, m["cmd"], want)
	}
	return m, nil
}

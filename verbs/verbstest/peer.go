package verbstest

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/onesided/rma/verbs"
)

// A driver carries out steps on one side of a case.
type driver interface {
	do(step) answer
	// kill ends the side's device without asking it, if that is possible.
	kill()
}

// A localDriver's side is in this process.
type localDriver struct{ s *station }

func (d localDriver) do(p step) answer { return p.do(d.s) }

func (d localDriver) kill() { _ = d.s.close() }

// A command is what a child reads: a new station for the next case, the end of
// the station, or a step on it.
type command struct {
	ID    uint64
	Open  *stationConfig
	Close bool
	Step  step
}

type reply struct {
	ID     uint64
	Answer answer
}

// ServePeer plays the far side of cases, whose steps it reads from in, with
// devices that it opens with open, one after the other. It returns nil at the
// end of in, after it has closed the last device. Nothing else may write to out.
func ServePeer(in io.Reader, out io.Writer, open func() (verbs.Device, error)) error {
	decoder, encoder := gob.NewDecoder(in), gob.NewEncoder(out)
	var current *station
	var writing sync.Mutex
	var written error
	send := func(id uint64, a answer) {
		writing.Lock()
		defer writing.Unlock()
		written = errors.Join(written, encoder.Encode(reply{id, a}))
	}
	var steps sync.WaitGroup
	defer steps.Wait()
	for {
		var c command
		err := decoder.Decode(&c)
		if err != nil || c.Close || c.Open != nil {
			var closed error
			if current != nil {
				closed = current.close()
				current = nil
			}
			switch {
			case errors.Is(err, io.EOF):
				return errors.Join(closed, written)
			case err != nil:
				return fmt.Errorf("verbstest: reading steps: %w", errors.Join(err, closed))
			}
			if closed == nil && c.Open != nil {
				var device verbs.Device
				if device, closed = open(); closed == nil {
					current = newStation(device, *c.Open)
				}
			}
			send(c.ID, answer{Failure: failure(closed)})
			continue
		}
		if current == nil || c.Step == nil {
			send(c.ID, answer{Failure: "verbstest: a step without a station"})
			continue
		}
		on := current
		steps.Go(func() { send(c.ID, c.Step.do(on)) })
	}
}

// children are the processes of one Run. A case takes one for each far side
// and gives it back.
type children struct {
	config Config
	mu     sync.Mutex
	idle   []*child
}

// driver opens a station in an idle child or in a new one, for this case.
func (c *children) driver(b *bench) driver {
	b.Helper()
	c.mu.Lock()
	var k *child
	if n := len(c.idle); n > 0 {
		k = c.idle[n-1]
		c.idle = c.idle[:n-1]
	}
	c.mu.Unlock()
	if k == nil {
		var err error
		if k, err = startChild(c.config.Peer(b.TB), c.config.Limit); err != nil {
			b.Fatalf("starting a peer: %v", err)
		}
	}
	if a := k.ask(command{Open: &stationConfig{Limit: c.config.Limit, Driven: c.config.Driven}}); a.Failure != "" {
		b.Fatalf("opening a device in the peer: %s\n%s", a.Failure, k.end())
	}
	b.Cleanup(func() {
		if k.killed {
			k.end()
			return
		}
		if a := k.ask(command{Close: true}); a.Failure != "" {
			b.Errorf("closing the peer's device: %s\n%s", a.Failure, k.end())
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.idle = append(c.idle, k)
	})
	return k
}

func (c *children) end(t testing.TB) {
	for _, k := range c.idle {
		if said := k.end(); said != "" {
			t.Errorf("the peer process: %s", said)
		}
	}
}

// A child is a process with a far side in it.
type child struct {
	process *exec.Cmd
	in      io.WriteCloser
	stderr  bytes.Buffer
	limit   time.Duration
	killed  bool
	ended   chan struct{} // closed when it answers no more

	mu      sync.Mutex
	encoder *gob.Encoder
	last    uint64
	waiting map[uint64]chan answer
}

func startChild(process *exec.Cmd, limit time.Duration) (*child, error) {
	k := &child{process: process, limit: limit, ended: make(chan struct{}), waiting: map[uint64]chan answer{}}
	var err error
	if k.in, err = process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if process.Stderr == nil {
		process.Stderr = &k.stderr
	}
	if err := process.Start(); err != nil {
		return nil, err
	}
	k.encoder = gob.NewEncoder(k.in)
	go k.listen(gob.NewDecoder(out))
	return k, nil
}

func (k *child) listen(decoder *gob.Decoder) {
	defer close(k.ended)
	for {
		var r reply
		if err := decoder.Decode(&r); err != nil {
			return
		}
		k.mu.Lock()
		waiting := k.waiting[r.ID]
		delete(k.waiting, r.ID)
		k.mu.Unlock()
		if waiting != nil {
			waiting <- r.Answer
		}
	}
}

// ask sends a command and waits for its answer. Every wait inside a step is
// bounded in the child; the bound here is for a child that hangs in its device.
func (k *child) ask(c command) answer {
	waiting := make(chan answer, 1)
	k.mu.Lock()
	k.last++
	c.ID = k.last
	k.waiting[c.ID] = waiting
	err := k.encoder.Encode(c)
	k.mu.Unlock()
	if err != nil {
		return answer{Failure: fmt.Sprintf("sending %T to the peer: %v", c.Step, err)}
	}
	hung := time.NewTimer(2*k.limit + 10*time.Second)
	defer hung.Stop()
	select {
	case a := <-waiting:
		return a
	case <-k.ended:
		select {
		case a := <-waiting:
			return a
		default:
			return answer{Failure: fmt.Sprintf("the peer process ended during %T", c.Step)}
		}
	case <-hung.C:
		return answer{Failure: fmt.Sprintf("the peer process hangs in %T", c.Step)}
	}
}

func (k *child) do(p step) answer { return k.ask(command{Step: p}) }

func (k *child) kill() {
	k.killed = true
	_ = k.process.Process.Kill()
	<-k.ended
	_ = k.process.Wait()
}

// end lets the process end by itself, or by force if it does not, and returns
// what was wrong with that and what the process said.
func (k *child) end() string {
	if k.killed {
		return ""
	}
	k.killed = true
	_ = k.in.Close()
	force := time.AfterFunc(k.limit+10*time.Second, func() { _ = k.process.Process.Kill() })
	defer force.Stop()
	<-k.ended
	if err := k.process.Wait(); err != nil {
		return fmt.Sprintf("%v\n%s", err, k.stderr.String())
	}
	return ""
}

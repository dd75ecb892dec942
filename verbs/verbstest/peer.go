package verbstest

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/raceorder"
	"github.com/onesided/rma/verbs"
)

// A driver executes steps on one side of a case.
type driver interface {
	do(step) answer
	// kill ends the side's device without asking it, if possible, and reports whether it did. Otherwise it closes the
	// device.
	kill() (crashed bool)
}

// A localDriver drives a side in this process.
type localDriver struct{ s *station }

func (d localDriver) do(p step) answer { return p.do(d.s) }

func (d localDriver) kill() (crashed bool) {
	if d.s.config.kill == nil {
		_ = d.s.close()
		return false
	}
	d.s.undrive()
	d.s.config.kill(d.s.device)
	return true
}

// A command is what a child reads: a new station for the next case, the end of the station, or a step on it.
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

// ServePeer plays the far side of cases. It reads their steps from in, and uses devices that it opens with open, one
// after the other. It returns nil at the end of in, after it has closed the last device. Only ServePeer may write to
// out.
func ServePeer(in io.Reader, out io.Writer, open func() (verbs.Device, error)) error {
	p := &peer{encoder: gob.NewEncoder(releasingWriter{out})}
	decoder := gob.NewDecoder(acquiringReader{in})
	for {
		var c command
		err := decoder.Decode(&c)
		switch {
		case err != nil:
			err = errors.Join(ignoreEOF(err), p.leave())
			p.steps.Wait()
			return errors.Join(err, p.broken)
		case c.Open != nil:
			p.send(c.ID, answer{Failure: failure(errors.Join(p.leave(), p.enter(open, *c.Open)))})
		case c.Close:
			p.send(c.ID, answer{Failure: failure(p.leave())})
		case p.station == nil || c.Step == nil:
			p.send(c.ID, answer{Failure: "verbstest: a step without a station"})
		default:
			station := p.station
			p.steps.Go(func() { p.send(c.ID, c.Step.do(station)) })
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return fmt.Errorf("verbstest: reading steps: %w", err)
}

// A peer is the state of ServePeer.
type peer struct {
	station *station
	steps   sync.WaitGroup

	mu      sync.Mutex
	encoder *gob.Encoder
	broken  error // the first error of sending
}

func (p *peer) send(id uint64, a answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.encoder.Encode(reply{id, a}); err != nil && p.broken == nil {
		p.broken = fmt.Errorf("verbstest: answering a step: %w", err)
	}
}

func (p *peer) enter(open func() (verbs.Device, error), config stationConfig) error {
	device, err := open()
	if err != nil {
		return err
	}
	p.station = newStation(device, config)
	return nil
}

func (p *peer) leave() error {
	if p.station == nil {
		return nil
	}
	s := p.station
	p.station = nil
	return s.close()
}

// children are the child processes of one Run. A case takes one for each far side and returns it.
type children struct {
	config Config
	mu     sync.Mutex
	idle   []*child
}

// driver opens a station for this case in an idle child or in a new one.
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
		l, err := c.config.link(b.TB)
		if err != nil {
			b.Fatalf("starting a peer: %v", err)
		}
		k = newChild(l, c.config.Limit)
	}
	if a := k.ask(command{Open: &stationConfig{Limit: c.config.Limit, Driven: c.config.Driven}}); a.Failure != "" {
		b.Fatalf("opening a device in the peer: %s; its end: %v", a.Failure, k.end())
	}
	b.Cleanup(func() {
		if k.over {
			return
		}
		if a := k.ask(command{Close: true}); a.Failure != "" {
			b.Errorf("closing the peer's device: %s; its end: %v", a.Failure, k.end())
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
		if err := k.end(); err != nil {
			t.Errorf("the peer process: %v", err)
		}
	}
}

// A link is a connection to a server of steps.
type link struct {
	in  io.WriteCloser
	out io.Reader
	// kill ends the other end without asking it.
	kill func()
	// wait waits for the other end to end, after out has ended, and returns what was wrong.
	wait func() error
}

// Messages over a link order the steps of one side after those of the other, and with them what its devices do.
type (
	releasingWriter struct{ io.Writer }
	acquiringReader struct{ io.Reader }
)

func (w releasingWriter) Write(p []byte) (int, error) {
	raceorder.Release()
	return w.Writer.Write(p)
}

func (r acquiringReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	raceorder.Acquire()
	return n, err
}

// process starts a process and links its standard input and output.
func process(command *exec.Cmd) (*link, error) {
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer
	if command.Stderr == nil {
		command.Stderr = &said
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	return &link{in: in, out: out, kill: func() { _ = command.Process.Kill() }, wait: func() error {
		if err := command.Wait(); err != nil {
			return fmt.Errorf("%w\n%s", err, said.String())
		}
		return nil
	}}, nil
}

// A child is the far side of cases, at the other end of a link.
type child struct {
	*link
	limit time.Duration
	over  bool          // killed, or asked to end
	ended chan struct{} // closed when it responds no more

	mu      sync.Mutex
	encoder *gob.Encoder
	last    uint64
	waiting map[uint64]chan answer
}

func newChild(l *link, limit time.Duration) *child {
	k := &child{
		link: l, limit: limit, ended: make(chan struct{}),
		encoder: gob.NewEncoder(releasingWriter{l.in}), waiting: map[uint64]chan answer{},
	}
	go k.listen(gob.NewDecoder(acquiringReader{l.out}))
	return k
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

// ask sends a command and waits for its answer. Every wait in a step is bounded in the child. The bound here is for a
// child that hangs in its device.
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
	hung, cancel := context.WithTimeout(context.Background(), 2*k.limit+await.Limit)
	defer cancel()
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
	case <-hung.Done():
		return answer{Failure: fmt.Sprintf("the peer process hangs in %T", c.Step)}
	}
}

func (k *child) do(p step) answer { return k.ask(command{Step: p}) }

func (k *child) kill() (crashed bool) {
	k.over = true
	k.link.kill()
	<-k.ended
	_ = k.wait()
	return true
}

// end lets the other side end by itself, or kills it if it does not, and returns what was wrong.
func (k *child) end() error {
	if k.over {
		return nil
	}
	k.over = true
	_ = k.in.Close()
	hung, cancel := context.WithTimeout(context.Background(), k.limit+await.Limit)
	defer cancel()
	defer context.AfterFunc(hung, k.link.kill)()
	<-k.ended
	return k.wait()
}

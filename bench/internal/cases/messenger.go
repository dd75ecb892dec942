package cases

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/channel"
	"github.com/onesided/rma/world"
)

// A messenger connects ranks 0 and 1 for messages: a channel over a separate device, of the kind that the ranks use.
type messenger struct {
	device verbs.Device
	poller *channel.Poller
	end    *channel.End
	// region is the buffer for sending and receiving.
	region verbs.MemoryRegion
	into   [1]channel.Arrival
	looked int
	// virtual is set if time is virtual.
	virtual bool
}

func (m *messenger) open(open func() (verbs.Device, error), buffer []byte, options channel.Options) (err error) {
	if m.device, err = open(); err != nil {
		return err
	}
	m.virtual = m.device.Attributes().Virtual
	if m.region, err = m.device.RegisterMemory(buffer, verbs.LocalWrite); err != nil {
		return err
	}
	if _, served := m.device.(verbs.Server); served {
		// The processor of the peer places what is written, so a ring would save nothing.
		options.Budget = -1
	}
	m.poller, err = channel.NewPoller(m.device, options)
	return err
}

func (m *messenger) accept(ctx context.Context) (err error) {
	var requests [1]verbs.ConnectionRequest
	for m.device.PollConnections(requests[:]) == 0 {
		if err := m.pause(ctx); err != nil {
			return err
		}
	}
	m.end, err = m.poller.Accept(requests[0])
	return err
}

// send sends a message when there is room for it. The card reads a long message from the program's memory, until
// settle returns.
func (m *messenger) send(ctx context.Context, payload []byte) error {
	for {
		var err error
		if len(payload) > mostCopied {
			err = m.end.SendFrom(nil, verbs.Segment{Memory: payload, LKey: m.region.LKey()})
		} else {
			err = m.end.Send(payload)
		}
		if err == nil || !errors.Is(err, verbs.ErrQueueFull) {
			return err
		}
		m.poller.Poll(nil)
		if err := m.pause(ctx); err != nil {
			return err
		}
	}
}

// settle returns when the memory of sent messages belongs to the program again, as after MPI_Send.
func (m *messenger) settle(ctx context.Context) error {
	for m.end.Lent() {
		if m.poller.Poll(nil); m.end.Lent() {
			if err := m.pause(ctx); err != nil {
				return err
			}
		}
	}
	return m.end.Err()
}

// receive copies a message to the program's memory, as MPI does.
func (m *messenger) receive(ctx context.Context, into []byte) error {
	for m.poller.Poll(m.into[:]) == 0 {
		if err := m.pause(ctx); err != nil {
			return err
		}
	}
	m.looked = 0
	a := &m.into[0]
	switch {
	case a.Err != nil:
		return a.Err
	case len(a.Payload) != len(into):
		return fmt.Errorf("bench: a message of %d bytes, expected are %d", len(a.Payload), len(into))
	}
	m.device.Copy(into, a.Payload)
	m.end.Release(a)
	return nil
}

// pause lets others run when there was nothing to do: in virtual time always, otherwise now and then.
func (m *messenger) pause(ctx context.Context) error {
	if m.virtual {
		c := m.device.Channel()
		c.Sleep(c.Prepare(), time.Millisecond)
		c.Finish()
	} else if m.looked++; m.looked%pollsBeforeYield != 0 {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	runtime.Gosched()
	yieldProcessor()
	return nil
}

func (m *messenger) close() error {
	if m.device == nil {
		return nil
	}
	return errors.Join(m.poller.Close(), m.region.Deregister(), m.device.Close())
}

// mostCopied is the length of the longest message that is copied to be sent.
const mostCopied = 8 << 10

// addressBytes is the greatest length of a device's address.
const addressBytes = 256

// newMessenger connects ranks 0 and 1. It is collective. Messages are parts of buffer.
func newMessenger(ctx context.Context, w *world.World, open func() (verbs.Device, error), buffer []byte, options channel.Options) (*messenger, error) {
	m := new(messenger)
	own, all := make([]byte, addressBytes), make([]byte, addressBytes*w.Size())
	if w.Rank() < 2 {
		if err := m.open(open, buffer, options); err != nil {
			return nil, err
		}
		copy(own, m.device.Address())
	}
	if err := world.AllGather(ctx, w, own, all); err != nil {
		return nil, err
	}
	var err error
	switch w.Rank() {
	case 0:
		err = m.accept(ctx)
	case 1:
		m.end, err = m.poller.Connect(strings.TrimRight(string(all[:addressBytes]), "\x00"), nil)
	}
	return m, err
}

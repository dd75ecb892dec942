package channel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/onesided/rma/internal/pipe"
	"github.com/onesided/rma/verbs"
)

// If two devices map each other's memory (verbs.Mapper), an End has a pipe (package pipe) instead of a ring. Its owner,
// the receiver, offers it by an eager message. A peer that cannot map it says so, and gets a ring.

// pipeOfferHead is the length of an offer before the address of the device: Address and Length of the region in 64
// bits, and its RKey and the pipe's Lines and MaxMessage in 32, all in native byte order.
const (
	pipeOfferHead = 28
	// mostAddress is the length of the longest address of a device.
	mostAddress    = 256
	pipeOfferBytes = pipeOfferHead + mostAddress
)

// A retiredPipe belongs to a connection that has ended here. The peer may still store there: it has not announced that
// it has left.
type retiredPipe struct {
	reader *pipe.Reader
	region verbs.MemoryRegion
}

// freeOwn frees the ring or pipe in which this side receives. A pipe is kept while the peer may store there.
func (e *End) freeOwn() error {
	if in := e.channel.in.pipe; in != nil && e.offered && !in.Left() {
		e.poller.retired = append(e.poller.retired, retiredPipe{in.Reader, e.own})
		return nil
	}
	return FreeRing(e.poller.device, e.own)
}

// freeRetired frees the pipes that their writers have left.
func (p *Poller) freeRetired() error {
	var err error
	p.retired = slices.DeleteFunc(p.retired, func(d retiredPipe) bool {
		left := d.reader.Left()
		if left {
			err = errors.Join(err, FreeRing(p.device, d.region))
		}
		return left
	})
	return err
}

// ownPipe makes the pipe in which this side receives, and reports whether there is one.
func (e *End) ownPipe() bool {
	config := pipeShape(e.poller.options.MaxMessage)
	// Memory that the device does not take back stays allocated. That does not end this connection.
	_ = e.poller.freeRetired()
	return e.receiveIn(config.Bytes(), func(memory []byte) error { return e.channel.ownPipe(config, memory) })
}

// pipeOffer returns the offer of the pipe.
func (e *End) pipeOffer() []byte {
	config, region := pipeShape(e.poller.options.MaxMessage), e.own.Remote()
	order := binary.NativeEndian
	offer := make([]byte, 0, pipeOfferBytes)
	offer = order.AppendUint64(offer, region.Address)
	offer = order.AppendUint64(offer, region.Length)
	offer = order.AppendUint32(offer, region.RKey)
	offer = order.AppendUint32(offer, uint32(config.Lines))
	offer = order.AppendUint32(offer, uint32(config.MaxMessage))
	return append(offer, e.poller.device.Address()...)
}

// lendPipe maps the pipe that the peer has offered. If it cannot be mapped, the next eager message says so.
func (e *End) lendPipe(offer []byte) error {
	if len(offer) <= pipeOfferHead || len(offer) > pipeOfferBytes {
		return &ProtocolError{"the length of an offer of a pipe", uint64(len(offer)), pipeOfferHead + 1, pipeOfferBytes}
	}
	order := binary.NativeEndian
	region := verbs.RemoteRegion{Address: order.Uint64(offer), Length: order.Uint64(offer[8:]), RKey: order.Uint32(offer[16:])}
	config := pipe.Config{Lines: int(order.Uint32(offer[20:])), MaxMessage: int(order.Uint32(offer[24:]))}
	if allowed := pipeShape(MostPiped); config.Lines != allowed.Lines || config.MaxMessage <= StampBytes || config.MaxMessage > allowed.MaxMessage {
		return fmt.Errorf("%w: a pipe of %+v; allowed is %+v, and shorter messages", ErrProtocol, config, allowed)
	}
	if e.neighbor != nil {
		return errSecondPipe
	}
	neighbor, memory, err := e.mapPipe(string(bytes.TrimRight(offer[pipeOfferHead:], "\x00")), region)
	if err != nil {
		e.unmapped = true
		e.poller.owe(e)
		return nil
	}
	if err := e.channel.lendPipe(config, memory); err != nil {
		return err
	}
	e.neighbor = neighbor
	return nil
}

func (e *End) mapPipe(address string, region verbs.RemoteRegion) (verbs.Neighbor, []byte, error) {
	if e.poller.mapper == nil {
		return nil, nil, errors.New("channel: pipes are left off")
	}
	neighbor, err := e.poller.mapper.Neighbor(address)
	if err != nil {
		return nil, nil, err
	}
	memory, err := neighbor.Map(region)
	return neighbor, memory, err
}

// withdrawPipe frees a pipe that the peer cannot map. A ring follows.
func (e *End) withdrawPipe() error {
	if !e.channel.ownsPipe() || e.channel.in.pipe.next > 0 {
		return &ProtocolError{"the number of pipes that cannot be mapped", 1, 0, 0}
	}
	e.poller.set.Remove(e.channel)
	e.channel.disown()
	e.pipeless, e.offered = true, false
	region := e.own
	e.own = nil
	return FreeRing(e.poller.device, region)
}

// takePipe takes messages from the pipe.
func (e *End) takePipe(into []Arrival) (n int) {
	c, p := e.channel, e.poller
	before := c.peerStamp.Load()
	for n < len(into) {
		a := &into[n]
		some, err := c.pollPipe(&a.Message)
		if err != nil {
			e.fail(err)
		}
		if !some {
			break
		}
		a.End, a.Err, a.slot = e, nil, byPipe
		n++
		p.count(e)
	}
	if c.peerStamp.Load() != before {
		p.owe(e)
	}
	p.piped = p.piped || n > 0
	return n
}

// lose ends the connection once everything that has arrived is taken.
func (e *End) lose(err error) {
	if e.err == nil && e.lost == nil {
		e.lost = err
		e.poller.lost, e.poller.quiet = append(e.poller.lost, e), false
	}
}

// drainLost takes the messages of lost connections, and ends those that are empty.
func (p *Poller) drainLost(into []Arrival) (n int) {
	left := 0
	for _, e := range p.lost {
		if e.err == nil && e.channel.ownsPipe() {
			n += e.takePipe(into[n:])
		}
		if e.err == nil && n == len(into) && (len(e.arrived) > 0 || e.channel.ownsPipe() && e.channel.pending()) {
			p.lost[left] = e
			left++
			continue
		}
		e.fail(e.lost)
	}
	p.lost = p.lost[:left]
	return n
}

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/ibv"
)

// train is the maximum number of requests posted together.
const train = 64

// bare is two devices on one card in this process, and a connection between them.
type bare struct {
	devices  [2]verbs.Device
	queues   [2]verbs.CompletionQueue
	regions  [2]verbs.MemoryRegion
	pair     verbs.QueuePair
	requests []verbs.SendRequest
}

var errBare = errors.New("figures: the bare card")

func newBare(bytes int) (b *bare, err error) {
	b = new(bare)
	for i := range b.devices {
		if b.devices[i], err = ibv.Open(ibv.FromEnvironment()); err != nil {
			return b, err
		}
		if b.queues[i], err = b.devices[i].CreateCompletionQueue(2 * train); err != nil {
			return b, err
		}
		memory, err := b.devices[i].AllocateMemory(bytes)
		if err != nil {
			return b, err
		}
		if b.regions[i], err = b.devices[i].RegisterMemory(memory, verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic); err != nil {
			return b, err
		}
	}
	return b, b.connect()
}

func (b *bare) connect() (err error) {
	config := func(i int) verbs.QueuePairConfig {
		return verbs.QueuePairConfig{SendQueue: b.queues[i], ReceiveQueue: b.queues[i], MaxSends: 2 * train}
	}
	if b.pair, err = b.devices[0].Connect(b.devices[1].Address(), nil, config(0)); err != nil {
		return err
	}
	var callers [1]verbs.ConnectionRequest
	for end := time.Now().Add(10 * time.Second); b.pair.State() == verbs.StateConnecting && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if b.devices[1].PollConnections(callers[:]) == 1 {
			if _, err = callers[0].Accept(config(1)); err != nil {
				return err
			}
		}
	}
	if b.pair.State() != verbs.StateReady {
		return fmt.Errorf("%w: no connection: %w", errBare, b.pair.Err())
	}
	return nil
}

func (b *bare) close() (err error) {
	for _, d := range b.devices {
		if d != nil {
			err = errors.Join(err, d.Close())
		}
	}
	return err
}

// ready prepares the requests of a figure for turn.
func (b *bare) ready(f *figure) {
	mine, remote := b.regions[0], b.regions[1].Remote()
	b.requests = b.requests[:0]
	for range min(f.count, train) {
		b.requests = append(b.requests, verbs.SendRequest{Opcode: f.opcode, RemoteAddress: remote.Address, RKey: remote.RKey, Operand: 1,
			Segments: []verbs.Segment{{Memory: mine.Memory()[:f.bytes], LKey: mine.LKey()}}})
	}
	b.requests[len(b.requests)-1].Flags = verbs.Signalled
}

// turn posts the requests and polls until all have completed.
func (b *bare) turn() error {
	if _, err := b.pair.PostSend(b.requests); err != nil {
		return err
	}
	var into [1]verbs.Completion
	for b.queues[0].Poll(into[:]) == 0 {
	}
	if into[0].Status != verbs.StatusSuccess {
		return fmt.Errorf("%w: %w", errBare, into[0].Status)
	}
	return nil
}

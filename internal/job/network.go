package job

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/onesided/rma/internal/bootstrap/address"
	"github.com/onesided/rma/internal/descriptors"
	"github.com/onesided/rma/internal/loopback"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/ibv"
	"github.com/onesided/rma/verbs/rails"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/verbs/tcp"
)

const (
	// rankDescriptors is how many descriptors a device takes for each rank that it reaches, while both ranks make a connection: one of
	// the two is closed.
	rankDescriptors = 2
	// moreDescriptors is how many a device takes beside them: one that this rank sleeps on, and two while sockets are duplicated, one
	// that this rank has connected and one that it has accepted.
	moreDescriptors = 3
	// mostConnections bounds the connections for which a rank must have descriptors when it joins: it may not reach all ranks.
	mostConnections = 64
	// openDescriptors is how many a device takes that reaches no rank yet.
	openDescriptors = 9
	// fileDescriptors is how many a rank may have open beside its devices: the files of RMA_STATS and of a trace.
	fileDescriptors = 4
	// mostCounted bounds the descriptors that a rank counts: they are enough for some five thousand ranks of a host.
	mostCounted = 1 << 14
)

// connectDescriptors is how many descriptors the devices of a network need to reach others, beside those that they take themselves.
func connectDescriptors(others, devices int) int {
	if others == 0 {
		return 0
	}
	return devices*moreDescriptors + rankDescriptors*min(devices*others, max(devices, mostConnections))
}

// sharingDescriptors is how many descriptors a rank needs that shares memory with neighbors, and reaches others over devices of a
// network, before it opens those.
func sharingDescriptors(neighbors, others, devices int) int {
	needed := shm.Descriptors(neighbors) + fileDescriptors
	if others > 0 {
		needed += devices*openDescriptors + connectDescriptors(others, devices)
	}
	return min(needed, mostCounted)
}

// openNetwork opens the device that reaches every rank.
func openNetwork(ctx context.Context, o opening, s Settings) (verbs.Device, error) {
	if s.network != nil {
		device, err := s.network(o.rank)
		if err != nil {
			return nil, err
		}
		return s.withTrace(device), nil
	}
	key, err := s.jobKey(o.key)
	if err != nil {
		return nil, err
	}
	listen, err := s.listenAt(ctx, o.near)
	if err != nil {
		return nil, err
	}
	if o.device == ibvDevice || len(s.listen) > 0 {
		s.port = nil
	}
	var cards []verbs.Device
	if o.device == ibvDevice {
		cards, err = s.openRDMA(at(listen[0]), key)
	} else {
		cards, err = s.openTCP(listen, key)
	}
	var device verbs.Device
	if err == nil {
		device, err = joinCards(cards, s.tuning.NoStriping)
	}
	if err != nil {
		for _, card := range cards {
			err = errors.Join(err, card.Close())
		}
		return nil, err
	}
	if err := checkDescriptors(o.toShare() + o.toConnect(len(cards))); err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return s.withTrace(device), nil
}

// checkDescriptors returns a verbs.ErrShortage if this process cannot open as many descriptors as its devices need to reach other
// ranks. The others would wait for connections that this one cannot accept.
func checkDescriptors(needed int) error {
	if free := descriptors.Free(needed); free < needed {
		return fmt.Errorf("world: %w: %d file descriptors are needed, %d are left: raise RLIMIT_NOFILE (ulimit -n), which is %d",
			verbs.ErrShortage, needed, free, descriptors.Limit())
	}
	return nil
}

// jobKey is the key by which the ranks know each other: the one that all have, or what rank 0 has told.
func (s *Settings) jobKey(told string) ([]byte, error) {
	if s.key != nil {
		return s.key, nil
	}
	key, err := hex.DecodeString(told)
	if err != nil {
		return nil, fmt.Errorf("%w: the key of rank 0: %w", errContact, err)
	}
	return key, nil
}

func at(address netip.Addr) string { return net.JoinHostPort(address.String(), "0") }

// openTCP opens a device for each address. What it has opened when one fails is given back too.
func (s *Settings) openTCP(listen []netip.Addr, key []byte) (cards []verbs.Device, err error) {
	for _, address := range listen {
		card, err := tcp.Open(tcp.Options{Listen: at(address), Port: s.port, Key: key, TLS: s.tls, Silence: s.silence, Logger: s.logger, Without: s.tuning.NoSockets})
		if err != nil {
			return cards, err
		}
		cards = append(cards, card)
	}
	return cards, nil
}

// openRDMA opens each card, likewise.
func (s *Settings) openRDMA(listen string, key []byte) (cards []verbs.Device, err error) {
	each, err := s.rdmaOptions().Rails()
	for _, options := range each {
		options.Listen, options.Key, options.Silence, options.Logger = listen, key, s.silence, s.logger
		card, err := ibv.Open(options)
		if err != nil {
			return cards, err
		}
		cards = append(cards, card)
	}
	return cards, err
}

// joinCards makes one device of several. Without striping it uses only the first.
func joinCards(cards []verbs.Device, noStriping bool) (verbs.Device, error) {
	if len(cards) == 1 {
		return cards[0], nil
	}
	var without rails.Optimization
	if noStriping {
		without = rails.Striping
	}
	return rails.NewWithout(without, cards...)
}

// addresses returns the number of addresses at which each rank listens.
func (s *Settings) addresses() int { return max(1, len(s.listen)) }

// listenAt is the addresses at which a rank listens: what the user says, the loopback
// address where all ranks see the same one, or else one that others can reach.
func (s *Settings) listenAt(ctx context.Context, near bool) ([]netip.Addr, error) {
	switch {
	case len(s.listen) > 0:
		return s.listen, nil
	case near:
		one, err := loopback.Address()
		return []netip.Addr{one}, err
	}
	one, err := address.Default(ctx)
	return []netip.Addr{one}, err
}

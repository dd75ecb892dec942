package world

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/ibv"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/world/address"
)

// openNetwork opens the device that reaches every rank.
func openNetwork(ctx context.Context, o opening, s settings) (verbs.Device, error) {
	if s.network != nil {
		device, err := s.network(o.rank)
		if err != nil {
			return nil, err
		}
		return s.withTrace(device), nil
	}
	key := s.key
	if key == nil {
		var err error
		if key, err = hex.DecodeString(o.key); err != nil {
			return nil, fmt.Errorf("%w: the key of rank 0: %w", errContact, err)
		}
	}
	listen, err := s.listenAt(ctx, o.near)
	if err != nil {
		return nil, err
	}
	at := net.JoinHostPort(listen.String(), "0")
	var device verbs.Device
	if o.device == ibvDevice {
		options := s.rdmaOptions()
		options.Listen, options.Key, options.Silence, options.Logger = at, key, s.silence, s.logger
		device, err = ibv.Open(options)
	} else {
		device, err = tcp.Open(tcp.Options{Listen: at, Key: key, TLS: s.tls, Silence: s.silence, Logger: s.logger, Without: s.without})
	}
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", o.device, err)
	}
	return s.withTrace(device), nil
}

// listenAt is the address at which a rank listens: what the user says, the loopback
// address where all ranks see the same one, or else one that others can reach.
func (s *settings) listenAt(ctx context.Context, near bool) (netip.Addr, error) {
	switch {
	case s.listen.IsValid():
		return s.listen, nil
	case near:
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	return address.Default(ctx)
}

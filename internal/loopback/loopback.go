// Package loopback finds the address by which processes of one host reach each other, also on a host that has IPv6
// only.
package loopback

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	_ "github.com/onesided/rma/internal/platform"
)

// Address returns the loopback address of this host: the IPv4 address if it has both.
func Address() (netip.Addr, error) {
	var missing []error
	for _, address := range [...]netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
		err := bind(address)
		switch {
		case err == nil:
			return address, nil
		case !errors.Is(err, syscall.EADDRNOTAVAIL) && !errors.Is(err, syscall.EAFNOSUPPORT):
			return netip.Addr{}, fmt.Errorf("finding the loopback address of this host: %w", err)
		}
		missing = append(missing, err)
	}
	return netip.Addr{}, fmt.Errorf("this host has no loopback address, set its loopback interface up: %w; %w", missing[0], missing[1])
}

// HostPort returns the host:port to listen at that address, with a port that the system chooses.
func HostPort() (string, error) {
	address, err := Address()
	return netip.AddrPortFrom(address, 0).String(), err
}

// bind checks whether this host has an address. A socket shows that even in a process that may not list interfaces.
func bind(address netip.Addr) error {
	socket, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, 0)))
	if err != nil {
		return err
	}
	return socket.Close()
}

// Package loopback finds the address by which processes of one host reach each other, also on a host that has IPv6 only.
package loopback

import (
	"fmt"
	"net"
	"net/netip"
)

// Address is the loopback address of this host, that of IPv4 if it has both.
func Address() (netip.Addr, error) {
	ipv4, ipv6 := netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()
	err := bind(ipv4)
	if err == nil {
		return ipv4, nil
	}
	err6 := bind(ipv6)
	if err6 == nil {
		return ipv6, nil
	}
	return netip.Addr{}, fmt.Errorf("this host has no loopback address, set its loopback interface up: %w; %w", err, err6)
}

// HostPort is the host:port to listen at that address, at a port that the system chooses.
func HostPort() (string, error) {
	address, err := Address()
	return netip.AddrPortFrom(address, 0).String(), err
}

// bind finds out whether this host has an address. Sockets tell so even where a process must not look at interfaces.
func bind(address netip.Addr) error {
	socket, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(address, 0)))
	if err != nil {
		return err
	}
	return socket.Close()
}

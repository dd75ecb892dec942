package nettest

import (
	"fmt"
	"net"
	"net/netip"
	"time"
)

const (
	// carryLimit bounds the time until a link that is up carries packets.
	carryLimit = time.Minute
	probeEvery = 20 * time.Millisecond
	probePort  = 7
)

// bridgeAddress is the address at which the bridge answers probes.
var bridgeAddress = netip.MustParseAddr("198.18.0.254")

// answer makes the bridge send probes back.
func (n *Network) answer() error {
	return inside(n.bridge, func() error {
		bridge, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(bridgeAddress, probePort)))
		if err != nil {
			return fmt.Errorf("nettest: answering probes: %w", err)
		}
		n.probes = bridge
		go func() {
			var datagram [16]byte
			for {
				length, from, err := bridge.ReadFromUDPAddrPort(datagram[:])
				if err != nil {
					return
				}
				// A lost probe is sent again.
				_, _ = bridge.WriteToUDPAddrPort(datagram[:length], from)
			}
		}()
		return nil
	})
}

// await returns when a host's link carries datagrams both ways. After a link is up the kernel drops packets for a
// while, sometimes for a second.
func (n *Network) await(host int) error {
	var probe *net.UDPConn
	if err := inside(n.hosts[host], func() (err error) {
		probe, err = net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(bridgeAddress, probePort)))
		return err
	}); err != nil {
		return fmt.Errorf("nettest: probing the link of host %d: %w", host, err)
	}
	defer probe.Close()
	datagram := []byte("are you there?")
	for begun := time.Now(); time.Since(begun) < carryLimit; {
		// An error belongs to an earlier probe, for which no host was found.
		_, _ = probe.Write(datagram)
		if err := probe.SetReadDeadline(time.Now().Add(probeEvery)); err != nil { // expires
			return fmt.Errorf("nettest: probing the link of host %d: %w", host, err)
		}
		if _, err := probe.Read(datagram); err == nil {
			return nil
		}
	}
	return fmt.Errorf("nettest: the link of host %d is up but carries nothing after %v", host, carryLimit)
}

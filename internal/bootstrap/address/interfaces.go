package address

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// An Interface describes a network interface.
type Interface struct {
	Name string
	// Up is set if packets pass.
	Up bool
	// Loopback is set if packets do not leave this host.
	Loopback bool
	// Addresses have the length of their network's prefix. The main one is first.
	Addresses []netip.Prefix
}

// Interfaces returns the interfaces of this host.
func Interfaces() ([]Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("address: %w", err)
	}
	interfaces := make([]Interface, 0, len(all))
	for _, one := range all {
		i := Interface{Name: one.Name, Up: one.Flags&net.FlagUp != 0, Loopback: one.Flags&net.FlagLoopback != 0}
		addresses, err := one.Addrs()
		if err != nil {
			return nil, fmt.Errorf("address: %s: %w", one.Name, err)
		}
		for _, address := range addresses {
			// The text of any other kind of address is no prefix.
			if p, err := netip.ParsePrefix(address.String()); err == nil {
				i.Addresses = append(i.Addresses, p)
			}
		}
		interfaces = append(interfaces, i)
	}
	return interfaces, nil
}

// bridges are prefixes of the names of interfaces by which container engines, virtual machines and Kubernetes
// networks join programs of one host.
var bridges = []string{
	"docker", "br-", "virbr", "vmnet", "veth", "podman", "lxc", "lxdbr", "incusbr",
	"cni", "cbr", "flannel", "cali", "vxlan", "tunl", "cilium", "weave", "antrea", "ovn-", "kube-", "nodelocaldns",
}

func (i Interface) isBridge() bool {
	for _, prefix := range bridges {
		if strings.HasPrefix(i.Name, prefix) {
			return true
		}
	}
	return false
}

// documentation addresses lie beyond the default route and belong to no host.
var documentation = []string{"203.0.113.1:9", "[2001:db8::1]:9"}

// Routes returns the addresses from which the host's default routes leave. It lets the system choose one for packets
// that are never sent.
func Routes() []netip.Addr {
	var routes []netip.Addr
	for _, there := range documentation {
		conn, err := net.Dial("udp", there)
		if err != nil {
			continue
		}
		if here, ok := conn.LocalAddr().(*net.UDPAddr); ok {
			routes = append(routes, here.AddrPort().Addr().Unmap())
		}
		_ = conn.Close()
	}
	return routes
}

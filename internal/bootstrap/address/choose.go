package address

import (
	"cmp"
	"net/netip"
	"slices"
)

// A candidate is an address of an interface that is up.
type candidate struct {
	address netip.Addr
	on      Interface
	// routed is set if a default route leaves from the address.
	routed bool
}

// candidates returns all addresses of interfaces that are up, the best first. It orders them by their use, then IPv4
// before IPv6, then those of a default route first, then by the names of their interfaces. Addresses of one interface
// keep the system's order.
func candidates(interfaces []Interface, routes []netip.Addr) []candidate {
	var all []candidate
	for _, i := range interfaces {
		if !i.Up {
			continue
		}
		for _, p := range i.Addresses {
			a := p.Addr().Unmap()
			all = append(all, candidate{address: a, on: i, routed: slices.Contains(routes, a)})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(a.rank(), b.rank()),
			cmp.Compare(a.address.BitLen(), b.address.BitLen()),
			before(a.routed, b.routed),
			cmp.Compare(a.on.Name, b.on.Name),
		)
	})
	return all
}

func before(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// The uses of an address, from the best.
const (
	leadsOut = iota
	leadsToContainers
	leadsToOneNetwork
	leadsNowhere
)

func (c candidate) rank() int {
	switch {
	case c.address.IsLoopback():
		return leadsNowhere
	case !c.address.IsGlobalUnicast():
		return leadsToOneNetwork
	case c.routed:
		return leadsOut
	case c.on.isBridge() || c.on.Loopback:
		return leadsToContainers
	}
	return leadsOut
}

// Choose returns the address at which a host with these interfaces listens. routes are the addresses from which its
// default routes leave. If no address leads out of the host, Choose returns a loopback address, or the zero Addr if
// there is none.
func Choose(interfaces []Interface, routes ...netip.Addr) netip.Addr {
	for _, c := range candidates(interfaces, routes) {
		if r := c.rank(); r == leadsOut || r == leadsNowhere {
			return c.address
		}
	}
	return netip.Addr{}
}

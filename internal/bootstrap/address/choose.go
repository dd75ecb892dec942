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
	// routed: a default route leaves from it.
	routed bool
}

// candidates are all addresses of interfaces that are up, the best first: by what they
// are good for, IPv4 before IPv6, those of a default route before others, then in the
// order of interfaces' names and within one as the system has them.
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

// What an address is good for, from the best.
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

// Choose gives the address to listen at, of a host with these interfaces whose default
// routes leave from routes. Of a host that has none that leads out it is a loopback
// address, or none if it has none of these either.
func Choose(interfaces []Interface, routes ...netip.Addr) netip.Addr {
	for _, c := range candidates(interfaces, routes) {
		if r := c.rank(); r == leadsOut || r == leadsNowhere {
			return c.address
		}
	}
	return netip.Addr{}
}

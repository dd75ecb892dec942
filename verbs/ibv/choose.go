//go:build ibverbs && cgo && linux

package ibv

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// An mtu is a maximum packet size as cards number it: 1 is 256 bytes, 5 is 4096.
type mtu uint8

func (m mtu) bytes() int { return 128 << m }

// mtuOf returns the number of a size, or 0 if there is none.
func mtuOf(bytes int) mtu {
	for m := mtu(1); m <= 5; m++ {
		if m.bytes() == bytes {
			return m
		}
	}
	return 0
}

// A port is the state of a card's port.
type port struct {
	number int
	state  portState
	mtu    mtu
	// message is the maximum length of a request, in bytes.
	message uint64
	lid     uint16
	// ethernet reports whether it is a RoCE port, global whether the peers' addresses are GIDs.
	ethernet, global bool
	// rate is the rate of the link in bytes per second, 0 if unknown.
	rate float64
	gids int
}

type portState uint8

const portActive portState = 4

var portStates = [...]string{1: "down", 2: "initializing", 3: "armed", portActive: "active", 5: "deferred"}

func (s portState) String() string {
	if int(s) < len(portStates) && portStates[s] != "" {
		return portStates[s]
	}
	return fmt.Sprintf("in state %d", uint8(s))
}

// rateOf returns the rate of a link in bytes per second from the codes of its speed and width.
func rateOf(speed, width uint8) float64 {
	lanes := map[uint8]float64{1: 1, 2: 4, 4: 8, 8: 12, 16: 2}[width]
	// The data rate of a lane in bits per second. The first three encode 8 bits in 10.
	lane := map[uint8]float64{1: 2e9, 2: 4e9, 4: 8e9, 8: 10e9, 16: 13.64e9, 32: 25e9, 64: 50e9, 128: 100e9}[speed]
	return lanes * lane / 8
}

// A gid is an entry of a port's table of addresses.
type gid struct {
	index   int
	kind    gidKind
	address [16]byte
}

type gidKind uint8

const (
	gidInfiniBand gidKind = iota
	gidRoCE1
	gidRoCE2
)

func (k gidKind) String() string {
	switch k {
	case gidInfiniBand:
		return "InfiniBand"
	case gidRoCE1:
		return "RoCE v1"
	case gidRoCE2:
		return "RoCE v2"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

func (g *gid) ip() netip.Addr { return netip.AddrFrom16(g.address) }

// merit orders entries. RoCE v2 is preferred because it is routed and usual, and an IPv4 address because it was
// configured for the interface.
func (g *gid) merit() int {
	merit := 0
	switch {
	case g.ip().Is4In6():
		merit = 2
	case !g.ip().IsLinkLocalUnicast():
		merit = 1
	}
	if g.kind == gidRoCE2 {
		merit += 3
	}
	return merit
}

// chooseGID returns the entry that the user wants, or the best, the first of equal ones. The error lists the entries.
func chooseGID(entries []gid, wanted string) (gid, error) {
	if wanted == "" {
		if len(entries) == 0 {
			return gid{}, fmt.Errorf("the table of GIDs is empty; give the port's network interface an address")
		}
		best := entries[0]
		for _, e := range entries[1:] {
			if e.merit() > best.merit() {
				best = e
			}
		}
		return best, nil
	}
	index, numberErr := strconv.Atoi(wanted)
	address, addressErr := netip.ParseAddr(wanted)
	if numberErr != nil && addressErr != nil {
		return gid{}, fmt.Errorf("GID is %q, must be an index or an IP address", wanted)
	}
	found := -1
	for i := range entries {
		e := &entries[i]
		fits := e.index == index
		if numberErr != nil {
			fits = e.ip().Unmap() == address.Unmap()
		}
		if fits && (found < 0 || e.merit() > entries[found].merit()) {
			found = i
		}
	}
	if found < 0 {
		return gid{}, fmt.Errorf("there is no GID %s; there are %s", wanted, gidTexts(entries))
	}
	return entries[found], nil
}

func gidTexts(entries []gid) string {
	if len(entries) == 0 {
		return "none: give the port's network interface an address"
	}
	var texts []string
	for i := range entries {
		e := &entries[i]
		texts = append(texts, fmt.Sprintf("%d (%v, %v)", e.index, e.ip().Unmap(), e.kind))
	}
	return strings.Join(texts, ", ")
}

// parseDevice parses Options.Device. A port of 0 means any port.
func parseDevice(text string) (name string, port int, err error) {
	name, number, ok := strings.Cut(text, ":")
	if !ok {
		return name, 0, nil
	}
	if port, err = strconv.Atoi(number); err != nil || port < 1 || port > 255 || name == "" {
		return "", 0, fmt.Errorf("the name %q must be a card's name, or that, a colon and a port from 1", text)
	}
	return name, port, nil
}

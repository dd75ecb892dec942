//go:build ibverbs && cgo && linux

package ibv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/onesided/rma/internal/errtext"
)

const (
	hopLimit = 64
	// retries is at most 6: some drivers take 7 as unlimited.
	retries = 6
	// notReadyRetries is unlimited: a message may wait for its receive as long as the peer lives. notReadyPause, as
	// cards number it, is 0.64 ms between retries.
	notReadyRetries = 7
	notReadyPause   = 12
	mostTimeout     = 31
	// mostReads is the maximum number of outstanding reads and atomics.
	mostReads = 16
)

// An endpoint is what a peer needs to know of a queue pair.
type endpoint struct {
	number, packet    uint32
	gid               [16]byte
	lid               uint16
	mtu               mtu
	readsOut, readsIn uint8
	ethernet          bool
	kind              gidKind
}

const endpointSize = 32

func (e *endpoint) append(to []byte) []byte {
	to = binary.BigEndian.AppendUint32(to, e.number)
	to = binary.BigEndian.AppendUint32(to, e.packet)
	to = append(to, e.gid[:]...)
	to = binary.BigEndian.AppendUint16(to, e.lid)
	ethernet := byte(0)
	if e.ethernet {
		ethernet = 1
	}
	return append(to, byte(e.mtu), e.readsOut, e.readsIn, ethernet, byte(e.kind), 0)
}

// parse parses the output of append. It returns an error for values that no card has.
func (e *endpoint) parse(from []byte) error {
	if len(from) != endpointSize {
		return fmt.Errorf("%w: an address of %s, not %d", ErrProtocol, errtext.Count(len(from), "byte"), endpointSize)
	}
	e.number, e.packet = binary.BigEndian.Uint32(from), binary.BigEndian.Uint32(from[4:])
	copy(e.gid[:], from[8:])
	e.lid = binary.BigEndian.Uint16(from[24:])
	e.mtu, e.readsOut, e.readsIn = mtu(from[26]), from[27], from[28]
	e.ethernet, e.kind = from[29] == 1, gidKind(from[30])
	if e.number>>24 != 0 || e.packet>>24 != 0 || e.mtu < 1 || e.mtu > 5 || from[29] > 1 {
		return fmt.Errorf("%w: an address that cannot be: %+v", ErrProtocol, *e)
	}
	return nil
}

// A path has the attributes by which packets of a queue pair reach its peer.
type path struct {
	peer endpoint
	// packet is the number of the first packet that leaves.
	packet            uint32
	port, gidIndex    int
	mtu               mtu
	readsOut, readsIn uint8
	timeout           uint8
	global            bool
}

// combine combines the limits of both ends: the smaller packet size, and the smaller number of outstanding reads.
func (p *path) combine(own, peer *endpoint) error {
	switch {
	case own.ethernet != peer.ethernet:
		return fmt.Errorf("one end's port is Ethernet (RoCE), the other's InfiniBand: they do not reach each other")
	case p.global && peer.gid == [16]byte{}:
		return fmt.Errorf("this end's port demands a global address (GID) of the peer, whose port sent none: the ports are configured differently")
	case own.ethernet && (own.kind == gidRoCE2) != (peer.kind == gidRoCE2):
		return fmt.Errorf("this end's GID %v is %v, the peer's %v is %v: choose GIDs of one kind", netip.AddrFrom16(own.gid).Unmap(), own.kind, netip.AddrFrom16(peer.gid).Unmap(), peer.kind)
	}
	p.peer, p.packet = *peer, own.packet
	p.mtu = min(own.mtu, peer.mtu)
	p.readsOut, p.readsIn = min(own.readsOut, peer.readsIn), min(own.readsIn, peer.readsOut)
	return nil
}

// timeoutOf returns the number by which cards know the time after which a packet is sent again.
func timeoutOf(d time.Duration) (uint8, error) {
	const unit = 4096 * time.Nanosecond
	most := unit << mostTimeout
	if d <= 0 || d > most {
		return 0, fmt.Errorf("answers after %v, allowed are 1ns to %v, or 0 for %v", d, most, defaultAnswer)
	}
	units := uint64((d + unit - 1) / unit)
	// A timeout of 0 would be none.
	return uint8(max(bits.Len64(units-1), 1)), nil
}

// explain names the attribute of a path that a port does not accept, or else the requested attributes.
func (p *path) explain(state string, actual port, gids []gid, l limits, cause error) string {
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if actual.state != portActive {
		add("the port is %v, and has to be active", actual.state)
	}
	if state == "RTR" {
		if p.mtu > actual.mtu {
			add("path MTU %d, the port takes at most %d", p.mtu.bytes(), actual.mtu.bytes())
		}
		if int(p.readsIn) > l.readsIn {
			add("max_dest_rd_atomic %d, the card takes at most %d", p.readsIn, l.readsIn)
		}
		if p.global {
			if _, err := chooseGID(gids, fmt.Sprint(p.gidIndex)); err != nil {
				add("sgid_index %d: %v", p.gidIndex, err)
			}
		} else if p.peer.lid == 0 {
			add("dlid 0: the peer's port has no LID; a subnet manager has to give it one")
		}
		switch {
		case errors.Is(cause, syscall.ENETUNREACH), errors.Is(cause, syscall.EHOSTUNREACH), errors.Is(cause, syscall.ETIMEDOUT), errors.Is(cause, syscall.ENODATA):
			add("dgid %v: this host knows no way there, or nobody answers at that address", p.peer.ip())
		}
	}
	if state == "RTS" {
		if int(p.readsOut) > l.readsOut {
			add("max_rd_atomic %d, the card takes at most %d", p.readsOut, l.readsOut)
		}
		if p.timeout > mostTimeout {
			add("timeout %d, at most %d is allowed", p.timeout, mostTimeout)
		}
	}
	if len(wrong) > 0 {
		return strings.Join(wrong, "; ")
	}
	if state == "RTR" {
		return fmt.Sprintf("asked for were path MTU %d, peer's queue pair %#x, sgid_index %d, dgid %v, dlid %d, max_dest_rd_atomic %d", p.mtu.bytes(), p.peer.number, p.gidIndex, p.peer.ip(), p.peer.lid, p.readsIn)
	}
	return fmt.Sprintf("asked for were port %d, timeout %d, retry_cnt %d, rnr_retry %d, max_rd_atomic %d", p.port, p.timeout, retries, notReadyRetries, p.readsOut)
}

func (e *endpoint) ip() netip.Addr { return netip.AddrFrom16(e.gid).Unmap() }

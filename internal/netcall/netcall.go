// Package netcall is the common part of devices whose peers connect over TCP: how they listen, and why a socket call
// has failed.
package netcall

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
)

// Listen listens at a host:port. 0.0.0.0 means all IPv4 addresses, and no IPv6 addresses.
func Listen(hostPort string) (net.Listener, error) {
	network := "tcp"
	if at, err := netip.ParseAddrPort(hostPort); err == nil && at.Addr().Is4() {
		network = "tcp4"
	}
	return net.Listen(network, hostPort)
}

// WithoutAddress returns the error of a dial without the address, which the caller adds.
func WithoutAddress(err error) error {
	var dialed *net.OpError
	if errors.As(err, &dialed) && dialed.Op == "dial" {
		return dialed.Err
	}
	return err
}

// errNoRoute says nothing about the peer. A missing route may come back soon, or may be missing for good.
var errNoRoute = errors.New("this host has no route to it")

// Class returns the class of the error of a dial: [verbs.ErrShortage], [verbs.ErrPeerGone], or an error that is
// neither.
func Class(err error) error {
	switch {
	case IsShortage(err):
		return verbs.ErrShortage
	case lacksRoute(err):
		return errNoRoute
	}
	return verbs.ErrPeerGone
}

// MayPass reports whether a dial has failed for a reason on this side that may be temporary. The caller then dials
// again.
func MayPass(err error) bool { return IsShortage(err) || lacksRoute(err) }

func lacksRoute(err error) bool { return isOneOf(err, syscall.ENETUNREACH, syscall.ENETDOWN) }

// IsShortage reports whether the system of this side is short of descriptors, ports or buffers. That says nothing
// about the peer.
func IsShortage(err error) bool {
	return isOneOf(err, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOBUFS, syscall.EADDRNOTAVAIL)
}

func isOneOf(err error, numbers ...syscall.Errno) bool {
	for _, errno := range numbers {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// Limited adds the limit of descriptors to an error of a call that has met it.
func Limited(err error) error {
	var limit unix.Rlimit
	if errors.Is(err, syscall.EMFILE) && unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		return fmt.Errorf("%w: RLIMIT_NOFILE (ulimit -n) is %d", err, limit.Cur)
	}
	return err
}

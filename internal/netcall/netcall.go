// Package netcall is what devices whose peers meet over TCP have in common: where they listen, and why a call of a socket has failed.
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

// Listen listens at a host:port. 0.0.0.0 is all addresses of IPv4, and not those of IPv6, too.
func Listen(hostPort string) (net.Listener, error) {
	network := "tcp"
	if at, err := netip.ParseAddrPort(hostPort); err == nil && at.Addr().Is4() {
		network = "tcp4"
	}
	return net.Listen(network, hostPort)
}

// Undialed returns the error of a dial without the address, which the caller names.
func Undialed(err error) error {
	var dialed *net.OpError
	if errors.As(err, &dialed) && dialed.Op == "dial" {
		return dialed.Err
	}
	return err
}

// errNoRoute says nothing about the peer. A route that is missing may come back soon, but may also be missing for good.
var errNoRoute = errors.New("this host has no route to it")

// Class returns the class of the error of a dial: [verbs.ErrShortage], [verbs.ErrPeerGone], or one of neither.
func Class(err error) error {
	switch {
	case IsShortage(err):
		return verbs.ErrShortage
	case lacksRoute(err):
		return errNoRoute
	}
	return verbs.ErrPeerGone
}

// MayPass reports whether a dial has failed for what this side lacks, and may get while the caller waits: then it dials again.
func MayPass(err error) bool { return IsShortage(err) || lacksRoute(err) }

func lacksRoute(err error) bool { return isOneOf(err, syscall.ENETUNREACH, syscall.ENETDOWN) }

// IsShortage reports whether the system of this side refused for want of descriptors, ports or buffers. That says nothing
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

// Limited adds to an error the limit that the call has met, if that is of descriptors.
func Limited(err error) error {
	var limit unix.Rlimit
	if errors.Is(err, syscall.EMFILE) && unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		return fmt.Errorf("%w: RLIMIT_NOFILE (ulimit -n) is %d", err, limit.Cur)
	}
	return err
}

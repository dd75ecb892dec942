package address

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"

	"github.com/onesided/rma/internal/loopback"
)

// ErrAddress reports that the address that the user wants cannot be listened at on this host.
var ErrAddress = errors.New("address: not an address of this host")

const variable = "RMA_ADDRESS"

// Default returns the address at which a rank on this host listens for the others: the one that RMA_ADDRESS names, or
// else the one of [Choose].
func Default(ctx context.Context) (netip.Addr, error) {
	interfaces, err := Interfaces()
	if err != nil {
		return netip.Addr{}, err
	}
	if text := os.Getenv(variable); text != "" {
		a, err := Find(ctx, interfaces, text, lookup)
		if err != nil {
			return netip.Addr{}, fmt.Errorf("%w (from %s)", err, variable)
		}
		return a, nil
	}
	if a := Choose(interfaces, Routes()...); a.IsValid() {
		return a, nil
	}
	return loopback.Address()
}

// Named returns the address of this host that text names, as RMA_ADDRESS would: see [Find].
func Named(ctx context.Context, text string) (netip.Addr, error) {
	interfaces, err := Interfaces()
	if err != nil {
		return netip.Addr{}, err
	}
	return Find(ctx, interfaces, text, lookup)
}

func lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// Find returns the address that text names on a host with these interfaces. text is an address, a range of addresses,
// an interface, or a host name, which lookup resolves.
func Find(ctx context.Context, interfaces []Interface, text string, lookup func(ctx context.Context, host string) ([]netip.Addr, error)) (netip.Addr, error) {
	f := finder{text: text, interfaces: interfaces, all: candidates(interfaces, nil)}
	if p, err := netip.ParsePrefix(text); err == nil {
		return f.first("is a range in which it has none", func(c candidate) bool { return p.Contains(c.address.WithZone("")) })
	}
	if a, err := netip.ParseAddr(unbracketed(text)); err == nil {
		return f.own(a.Unmap())
	}
	for _, i := range interfaces {
		if i.Name != text {
			continue
		}
		if !i.Up {
			return f.refuse("is an interface that is down")
		}
		return f.first("is an interface without an address to listen at", func(c candidate) bool { return c.on.Name == text })
	}
	if why := malformed(text); why != "" {
		return f.refuse(why + "; " + allowed)
	}
	named, err := lookup(ctx, text)
	if err != nil {
		return f.refuse(fmt.Sprintf("is no address, range or interface, and no host name either: %v; %s", err, allowed))
	}
	for _, a := range named {
		if a, err := f.own(a.Unmap()); err == nil {
			return a, nil
		}
	}
	return f.refuse(fmt.Sprintf("is the name of %s", join(named)))
}

// unbracketed removes the brackets that an IPv6 address has before a port.
func unbracketed(text string) string {
	if bare, ok := strings.CutSuffix(text, "]"); ok && strings.HasPrefix(bare, "[") && strings.Contains(bare, ":") {
		return bare[1:]
	}
	return text
}

// allowed describes the values of RMA_ADDRESS.
const allowed = "allowed are an IP address, a range of them such as 10.0.0.0/8, the name of an interface, and a host name"

// malformed says what is wrong with a text that is neither an interface nor a possible host name, so that it is not
// looked up. It returns "" if the text may be a name.
func malformed(text string) string {
	if text == "" {
		return "is empty"
	}
	if base, length, slashed := strings.Cut(text, "/"); slashed {
		a, err := netip.ParseAddr(base)
		if err != nil {
			return fmt.Sprintf("is no range: %q is no IP address", base)
		}
		return fmt.Sprintf("is no range: %q is no length of a prefix, 0 to %d", length, a.BitLen())
	}
	if host, _, err := net.SplitHostPort(text); err == nil {
		return fmt.Sprintf("has a port, which the system chooses: say %q", host)
	}
	if strings.ContainsAny(text, ":[]%") {
		return "is no IP address"
	}
	// A name whose last part is a number would be taken for an IPv4 address.
	if last := text[strings.LastIndexByte(text, '.')+1:]; last != "" && strings.Trim(last, "0123456789") == "" {
		return "is no IP address"
	}
	return ""
}

type finder struct {
	text       string
	interfaces []Interface
	all        []candidate
}

// first returns the best address among those wanted. Link-local IPv6 addresses are not considered: they have a
// meaning only together with this host's name of an interface.
func (f finder) first(otherwise string, wanted func(candidate) bool) (netip.Addr, error) {
	for _, c := range f.all {
		if wanted(c) && !(c.address.Is6() && c.address.IsLinkLocalUnicast()) {
			return c.address, nil
		}
	}
	return f.refuse(otherwise)
}

// own checks that the host has an address.
func (f finder) own(a netip.Addr) (netip.Addr, error) {
	if a.Is6() && a.IsLinkLocalUnicast() {
		return f.refuse("is link-local, and other hosts cannot know by which interface")
	}
	for _, c := range f.all {
		if c.address == a {
			return a, nil
		}
	}
	// The loopback interface has all addresses of its range.
	for _, i := range f.interfaces {
		for _, p := range i.Addresses {
			if i.Up && a.IsLoopback() && p.Addr().IsLoopback() && p.Contains(a) {
				return a, nil
			}
		}
	}
	return f.refuse("is not here")
}

func (f finder) refuse(why string) (netip.Addr, error) {
	var has []string
	for _, i := range f.interfaces {
		addresses := make([]netip.Addr, len(i.Addresses))
		for n, p := range i.Addresses {
			addresses[n] = p.Addr()
		}
		state := ""
		if !i.Up {
			state = " (down)"
		}
		if len(addresses) > 0 {
			has = append(has, i.Name+state+" "+join(addresses))
		}
	}
	if len(has) == 0 {
		has = []string{"none"}
	}
	return netip.Addr{}, fmt.Errorf("%w: %q %s; it has %s", ErrAddress, f.text, why, strings.Join(has, "; "))
}

func join(addresses []netip.Addr) string {
	texts := make([]string, len(addresses))
	for i, a := range addresses {
		texts[i] = a.String()
	}
	return strings.Join(texts, ", ")
}

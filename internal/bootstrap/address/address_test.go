package address_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/bootstrap/address"
)

// host returns the interfaces that a text describes. Each line has a name, words for the state, and addresses.
func host(t *testing.T, text string) []address.Interface {
	t.Helper()
	var interfaces []address.Interface
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		i := address.Interface{Name: fields[0], Up: true}
		for _, field := range fields[1:] {
			switch field {
			case "down":
				i.Up = false
			case "loopback":
				i.Loopback = true
			default:
				i.Addresses = append(i.Addresses, netip.MustParsePrefix(field))
			}
		}
		interfaces = append(interfaces, i)
	}
	return interfaces
}

const lo = "lo loopback 127.0.0.1/8 ::1/128\n"

func TestChoose(t *testing.T) {
	for _, c := range []struct{ name, host, routes, want string }{
		{"nothing at all", "", "", "invalid IP"},
		{"only loopback", lo, "", "127.0.0.1"},
		{"only loopback of version 6", "lo loopback ::1/128", "", "::1"},
		{"one interface", lo + "eth0 10.0.0.5/24 fe80::1/64", "", "10.0.0.5"},
		{"only one that is down", "eth0 down 10.0.0.5/24", "", "invalid IP"},
		{"one that is down", lo + "eth0 down 10.0.0.5/24", "", "127.0.0.1"},
		{"one without addresses", lo + "eth0", "", "127.0.0.1"},
		{"version 4 first", lo + "eth0 2001:db8::5/64 10.0.0.5/24", "", "10.0.0.5"},
		{"version 4 of another interface first", lo + "eth0 2001:db8::5/64\neth1 10.0.0.5/24", "2001:db8::5", "10.0.0.5"},
		{"version 6 if no other", lo + "eth0 fe80::1/64 2001:db8::5/64", "", "2001:db8::5"},
		{"link-local is none", lo + "eth0 169.254.3.4/16 fe80::1/64", "", "127.0.0.1"},
		{"names decide", lo + "eth1 10.0.1.5/24\neth0 10.0.0.5/24", "", "10.0.0.5"},
		{"main address", lo + "eth0 10.0.0.9/24 10.0.0.5/24", "", "10.0.0.9"},
		{"default route", lo + "eth0 10.0.0.5/24\nib0 10.9.0.5/24", "10.9.0.5", "10.9.0.5"},
		{"default route from a second address", lo + "eth0 10.0.0.9/24 10.0.0.5/24", "10.0.0.5", "10.0.0.5"},
		{"default route of an address that is gone", lo + "eth0 10.0.0.5/24", "10.0.0.6", "10.0.0.5"},
		{"docker", lo + "docker0 172.17.0.1/16\neth0 192.168.1.5/24", "", "192.168.1.5"},
		{"docker offline", lo + "docker0 172.17.0.1/16", "", "127.0.0.1"},
		{"docker beside version 6", lo + "docker0 172.17.0.1/16\neth0 2001:db8::5/64", "", "2001:db8::5"},
		{"a network of docker's", lo + "br-0a1b2c3d4e5f 172.18.0.1/16\neth0 192.168.1.5/24", "", "192.168.1.5"},
		{"the host's own bridge", lo + "br0 192.168.1.5/24\nvirbr0 192.168.122.1/24", "", "192.168.1.5"},
		{"a bridge with the default route", lo + "br-lan 192.168.1.5/24", "192.168.1.5", "192.168.1.5"},
		{"inside a container", lo + "eth0 172.17.0.2/16", "172.17.0.2", "172.17.0.2"},
		{"a name space with a bare pair", lo + "veth1 10.77.0.2/24", "10.77.0.2", "10.77.0.2"},
		{"a node of Kubernetes", lo + "cni0 10.244.0.1/24\nflannel.1 10.244.0.0/32\ncali0a1b 169.254.1.1/32\nkube-ipvs0 10.96.0.1/32\nvethaa 10.22.0.1/32\nens5 10.1.2.3/20", "", "10.1.2.3"},
		{"the host's address on loopback", "lo loopback 127.0.0.1/8 10.5.5.5/32\neth0 fe80::1/64", "10.5.5.5", "10.5.5.5"},
		{"a service's address on loopback", "lo loopback 127.0.0.1/8 10.5.5.5/32\neth0 10.0.0.5/24", "", "10.0.0.5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var routes []netip.Addr
			for _, route := range strings.Fields(c.routes) {
				routes = append(routes, netip.MustParseAddr(route))
			}
			interfaces := host(t, c.host)
			// The system may list the interfaces in any order.
			for range 10 {
				require.Equal(t, c.want, address.Choose(interfaces, routes...).String())
				rand.Shuffle(len(interfaces), func(i, j int) { interfaces[i], interfaces[j] = interfaces[j], interfaces[i] })
			}
		})
	}
}

func TestFind(t *testing.T) {
	const here = lo + `
eth0 10.0.0.5/24 10.0.0.6/24 2001:db8::5/64 fe80::5/64
ib0 10.9.0.5/16
ll0 169.254.3.4/16
six0 fe80::6/64
docker0 172.17.0.1/16
eth9 down 10.0.9.5/24`
	const allowed = "allowed are an IP address, a range of them such as 10.0.0.0/8, the name of an interface, and a host name"
	names := map[string]string{"node": "10.7.7.7 10.9.0.5 10.0.0.5", "elsewhere": "10.7.7.7", "mapped": "::ffff:10.0.0.6", "self": "127.0.1.1", "empty": ""}
	lookup := func(_ context.Context, name string) ([]netip.Addr, error) {
		text, ok := names[name]
		if !ok {
			return nil, errors.New("no such host")
		}
		var all []netip.Addr
		for _, a := range strings.Fields(text) {
			all = append(all, netip.MustParseAddr(a))
		}
		return all, nil
	}
	for _, c := range []struct{ name, text, want, says string }{
		{"address", "10.0.0.6", "10.0.0.6", ""},
		{"address of version 6", "2001:db8::5", "2001:db8::5", ""},
		{"address mapped to version 6", "::ffff:10.0.0.6", "10.0.0.6", ""},
		{"address of a bridge", "172.17.0.1", "172.17.0.1", ""},
		{"link-local address", "169.254.3.4", "169.254.3.4", ""},
		{"loopback", "127.0.0.1", "127.0.0.1", ""},
		{"loopback of version 6", "::1", "::1", ""},
		{"in brackets", "[::1]", "::1", ""},
		{"a global one in brackets", "[2001:db8::5]", "2001:db8::5", ""},
		{"in brackets, with a port", "[::1]:7", "", "has a port"},
		{"half in brackets", "[::1", "", "is no IP address"},
		{"another loopback", "127.7.7.7", "127.7.7.7", ""},
		{"range", "10.9.0.0/16", "10.9.0.5", ""},
		{"range with several", "10.0.0.0/8", "10.0.0.5", ""},
		{"range of version 6", "2001:db8::/32", "2001:db8::5", ""},
		{"range of all, which a bridge does not win", "0.0.0.0/0", "10.0.0.5", ""},
		{"range with bits of a host", "10.9.3.4/16", "10.9.0.5", ""},
		{"interface", "ib0", "10.9.0.5", ""},
		{"interface with several", "eth0", "10.0.0.5", ""},
		{"interface that is a bridge", "docker0", "172.17.0.1", ""},
		{"interface that is link-local", "ll0", "169.254.3.4", ""},
		{"loopback interface", "lo", "127.0.0.1", ""},
		{"host name", "node", "10.9.0.5", ""},
		{"host name mapped to version 6", "mapped", "10.0.0.6", ""},
		{"own name on loopback", "self", "127.0.1.1", ""},
		{"address of another", "10.0.0.7", "", `"10.0.0.7" is not here`},
		{"address of no one", "0.0.0.0", "", "is not here"},
		{"address that is down", "10.0.9.5", "", "is not here"},
		{"loopback of version 6 beyond its range", "::2", "", "is not here"},
		{"link-local of version 6", "fe80::5", "", "is link-local"},
		{"link-local of version 6 with its interface", "fe80::5%eth0", "", "is link-local"},
		{"range of another", "10.8.0.0/16", "", "is a range in which it has none"},
		{"range that is down", "10.0.9.0/24", "", "is a range in which it has none"},
		{"range that is link-local", "fe80::/10", "", "is a range in which it has none"},
		{"interface that is down", "eth9", "", "is an interface that is down"},
		{"interface without address", "six0", "", "is an interface without an address"},
		{"name of another host", "elsewhere", "", `"elsewhere" is the name of 10.7.7.7`},
		{"unknown name", "eth7", "", `"eth7" is no address, range or interface, and no host name either: no such host; ` + allowed},
		{"unknown name that ends in a digit", "node7.cluster2", "", "no such host; " + allowed},
		{"with a port", "10.0.0.5:80", "", `"10.0.0.5:80" has a port, which the system chooses: say "10.0.0.5"; ` + allowed},
		{"version 6 with a port", "[2001:db8::5]:80", "", `has a port, which the system chooses: say "2001:db8::5"; ` + allowed},
		{"interface with a port", "eth0:80", "", `has a port, which the system chooses: say "eth0"; ` + allowed},
		{"with no port behind its colon", "10.0.0.5:", "", "has a port"},
		{"version 6 with too many colons", "2001::db8::5", "", "is no IP address; " + allowed},
		{"number too large for an address", "10.0.0.300", "", "is no IP address; " + allowed},
		{"address cut short", "10.0.5", "", "is no IP address; " + allowed},
		{"prefix too long", "10.0.0.0/40", "", `is no range: "40" is no length of a prefix, 0 to 32; ` + allowed},
		{"prefix of version 6 too long", "2001:db8::/129", "", `"129" is no length of a prefix, 0 to 128; ` + allowed},
		{"negative prefix", "10.0.0.0/-1", "", `"-1" is no length of a prefix, 0 to 32`},
		{"prefix as a mask", "10.0.0.0/255.0.0.0", "", `"255.0.0.0" is no length of a prefix, 0 to 32`},
		{"no prefix behind its slash", "10.0.0.0/", "", `"" is no length of a prefix, 0 to 32`},
		{"prefix of an interface", "eth0/24", "", `is no range: "eth0" is no IP address; ` + allowed},
		{"range of one interface", "fe80::%eth0/64", "", "is link-local"},
		{"nothing", "", "", "is empty; " + allowed},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := address.Find(t.Context(), host(t, here), c.text, lookup)
			if c.says == "" {
				require.NoError(t, err)
				require.Equal(t, c.want, a.String())
				return
			}
			require.ErrorIs(t, err, address.ErrAddress)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "; it has lo 127.0.0.1, ::1; eth0 10.0.0.5, 10.0.0.6, 2001:db8::5, fe80::5; ib0 10.9.0.5;")
			require.ErrorContains(t, err, "eth9 (down) 10.0.9.5")
		})
	}
	_, err := address.Find(t.Context(), nil, "10.0.0.5", lookup)
	require.ErrorContains(t, err, "it has none")
}

// A program can listen at the address that Default chooses on the host of the test.
func TestDefaultOfThisHost(t *testing.T) {
	t.Setenv("RMA_ADDRESS", "")
	for _, want := range []string{"", "127.0.0.1", "127.0.0.0/8"} {
		t.Setenv("RMA_ADDRESS", want)
		a, err := address.Default(t.Context())
		require.NoError(t, err)
		l, err := net.Listen("tcp", netip.AddrPortFrom(a, 0).String())
		require.NoError(t, err)
		require.NoError(t, l.Close())
		if want != "" {
			require.True(t, a.IsLoopback())
		}
	}
	a, err := address.Named(t.Context(), "127.0.0.0/8")
	require.NoError(t, err)
	require.True(t, a.IsLoopback())
	_, err = address.Named(t.Context(), "203.0.113.255")
	require.ErrorIs(t, err, address.ErrAddress)
	t.Setenv("RMA_ADDRESS", "203.0.113.255")
	_, err = address.Default(t.Context())
	require.ErrorIs(t, err, address.ErrAddress)
	require.ErrorContains(t, err, "RMA_ADDRESS")
}

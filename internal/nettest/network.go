package nettest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Most is the greatest number of hosts of a network.
const Most = 250

const (
	// askAgain is the interval at which a host asks for the link address of another, giveUp the time after which it
	// gives up.
	askAgain = 20 * time.Millisecond
	giveUp   = 3 * time.Second
)

// watchVariable makes a process of a test binary a watcher. Its value is the number of namespaces that the watcher
// holds.
const watchVariable = "RMA_NETTEST_WATCH"

// A Network is a number of hosts, from 0 on, each with a link to a common bridge.
type Network struct {
	t testing.TB
	// bridge is the namespace with one end of all links. hosts are the namespaces with the other ends.
	bridge *os.File
	hosts  []*os.File
	// watcher kills the processes in the namespaces when life is closed.
	watcher *exec.Cmd
	life    io.Closer
	// probes is the bridge's socket that answers probes.
	probes  io.Closer
	ip      string
	nsenter string
}

// New makes a network for a test. When the test ends, it is removed, and all processes in it are killed.
func New(t testing.TB, hosts int) *Network {
	t.Helper()
	if hosts < 1 || hosts > Most {
		t.Fatalf("nettest: network of %d hosts: from 1 to %d are possible", hosts, Most)
	}
	n := &Network{t: t}
	for program, path := range map[string]*string{"ip": &n.ip, "nsenter": &n.nsenter} {
		var err error
		if *path, err = exec.LookPath(program); err != nil {
			t.Skipf("skipped: hosts of its own need the program %s, which is not installed", program)
		}
	}
	t.Cleanup(n.remove)
	if err := n.open(hosts); err != nil {
		t.Skipf("skipped: network namespaces need Linux and root: %v", err)
	}
	if err := n.watch(); err != nil {
		t.Fatal(err)
	}
	if err := n.connect(); err != nil {
		t.Skipf("skipped: the kernel does not join network namespaces: %v", err)
	}
	if err := n.carry(); err != nil {
		t.Fatal(err)
	}
	return n
}

// open makes the namespaces.
func (n *Network) open(hosts int) (err error) {
	if n.bridge, err = newSpace(); err != nil {
		return err
	}
	for range hosts {
		host, err := newSpace()
		if err != nil {
			return err
		}
		n.hosts = append(n.hosts, host)
	}
	return nil
}

// connect makes the bridge and the links. The two ends of a link are made in their namespaces directly. Without its
// forward delay a bridge forwards as soon as a link is up.
func (n *Network) connect() error {
	var bridge strings.Builder
	fmt.Fprintf(&bridge, "link add bridge type bridge forward_delay 0 mcast_snooping 0\naddress add %v/%d dev bridge\nlink set bridge up\n", bridgeAddress, addresses.Bits())
	for host, space := range n.hosts {
		fmt.Fprintf(&bridge, "link add %[1]s type veth peer name eth0 netns %[2]s\nlink set %[1]s master bridge\nlink set %[1]s up\n", port(host), path(space))
	}
	if err := n.configure(n.bridge, bridge.String()); err != nil {
		return err
	}
	for host, space := range n.hosts {
		// A host may ask for the link address of another while a link is down. With these settings it gets the address
		// soon after the link is up, and not a second later. It gives up as late as usual, so it does not report the
		// other unreachable earlier.
		script := fmt.Sprintf("link set lo up\naddress add %v/%d dev eth0\nlink set eth0 up\nntable change name arp_cache dev eth0 retrans %[3]d ucast_probes %[4]d mcast_probes %[4]d\n",
			n.Address(host), addresses.Bits(), askAgain.Milliseconds(), giveUp/askAgain)
		if err := n.configure(space, script); err != nil {
			return err
		}
	}
	return nil
}

// OnlyIPv6 removes IPv4 from all hosts, including loopback. Each host gets the IPv6 address of [Network.Address6].
func (n *Network) OnlyIPv6() {
	n.t.Helper()
	for host, space := range n.hosts {
		script := fmt.Sprintf("address add %v/%d dev eth0 nodad\naddress delete %v/%d dev eth0\naddress delete 127.0.0.1/8 dev lo\n",
			n.Address6(host), addresses6.Bits(), n.Address(host), addresses.Bits())
		if err := n.configure(space, script); err != nil {
			n.t.Skipf("skipped: the kernel has no IPv6: %v", err)
		}
	}
}

// addresses6 is in the block reserved for documentation (RFC 3849).
var addresses6 = netip.MustParsePrefix("2001:db8::/64")

// Address6 returns a host's address after OnlyIPv6.
func (n *Network) Address6(host int) netip.Addr {
	n.check(host)
	a := addresses6.Addr().As16()
	a[15] = byte(host) + 1
	return netip.AddrFrom16(a)
}

// carry returns when all links carry packets.
func (n *Network) carry() error {
	if err := n.answer(); err != nil {
		return err
	}
	for host := range n.hosts {
		if err := n.await(host); err != nil {
			return err
		}
	}
	return nil
}

// addresses is in the block reserved for measurements between networks (RFC 2544).
var addresses = netip.MustParsePrefix("198.18.0.0/24")

// Address returns a host's address.
func (n *Network) Address(host int) netip.Addr {
	n.check(host)
	a := addresses.Addr().As4()
	a[3] += byte(host) + 1
	return netip.AddrFrom4(a)
}

// port returns the name of the bridge's end of a host's link.
func port(host int) string { return fmt.Sprintf("host%d", host) }

func (n *Network) check(host int) {
	n.t.Helper()
	if host < 0 || host >= len(n.hosts) {
		n.t.Fatalf("nettest: host %d of a network of %d", host, len(n.hosts))
	}
}

// Cut takes a host's link down, at the bridge. Packets on their way over it are lost. The host sees that its link is
// down; the others do not.
func (n *Network) Cut(host int) {
	n.t.Helper()
	n.check(host)
	if err := n.link(host, "down"); err != nil {
		n.t.Fatal(err)
	}
}

// Join takes a host's link up again, and returns when it carries packets.
func (n *Network) Join(host int) {
	n.t.Helper()
	n.check(host)
	if err := errors.Join(n.link(host, "up"), n.await(host)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *Network) link(host int, state string) error {
	return n.configure(n.bridge, fmt.Sprintf("link set %s %s\n", port(host), state))
}

// Command returns a command that runs on a host. It is killed when the test ends.
func (n *Network) Command(host int, name string, arguments ...string) *exec.Cmd {
	n.t.Helper()
	n.check(host)
	return n.command(n.t.Context(), n.hosts[host], name, arguments...)
}

// command returns a command that runs in a namespace. nsenter executes the command in its own process, so the process
// stays the same.
func (n *Network) command(ctx context.Context, space *os.File, name string, arguments ...string) *exec.Cmd {
	return exec.CommandContext(ctx, n.nsenter, append([]string{"--net=" + path(space), "--", name}, arguments...)...)
}

// Do calls f on a thread that is on a host. Sockets that f itself makes belong to that host, wherever they are used
// later. Goroutines that f starts are not on the host.
func (n *Network) Do(host int, f func() error) error {
	n.t.Helper()
	n.check(host)
	return inside(n.hosts[host], f)
}

// configure makes ip carry out a script in a namespace.
func (n *Network) configure(space *os.File, script string) error {
	command := n.command(context.Background(), space, n.ip, "-batch", "-")
	command.Stdin = strings.NewReader(script)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("nettest: ip: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}

// watch starts the watcher.
func (n *Network) watch() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("nettest: finding the test binary: %w", err)
	}
	life, own, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("nettest: %w", err)
	}
	defer life.Close()
	watcher := exec.Command(self)
	watcher.Env = append(os.Environ(), watchVariable+"="+strconv.Itoa(1+len(n.hosts)), "GORACE=atexit_sleep_ms=0")
	watcher.Stderr = os.Stderr
	watcher.ExtraFiles = append([]*os.File{life, n.bridge}, n.hosts...)
	if err := watcher.Start(); err != nil {
		return errors.Join(fmt.Errorf("nettest: starting a watcher: %w", err), own.Close())
	}
	n.watcher, n.life = watcher, own
	return nil
}

// remove kills the processes in the namespaces and closes the namespaces.
func (n *Network) remove() {
	if n.probes != nil {
		_ = n.probes.Close()
	}
	if n.watcher != nil {
		_ = n.life.Close()
		if err := n.watcher.Wait(); err != nil {
			n.t.Errorf("nettest: ending processes: %v", err)
		}
	}
	for _, space := range append(n.hosts, n.bridge) {
		if space != nil {
			_ = space.Close()
		}
	}
}

// path returns the path by which other processes reach a namespace that this one has open.
func path(space *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), space.Fd()) }

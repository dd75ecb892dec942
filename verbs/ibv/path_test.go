//go:build ibverbs && cgo && linux

package ibv

import (
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
)

func someEndpoint() endpoint {
	return endpoint{number: 0x12, packet: 0xabcdef, gid: netip.MustParseAddr("10.0.0.7").As16(), lid: 3, mtu: 3,
		readsOut: 16, readsIn: 4, ethernet: true, kind: gidRoCE2}
}

func TestEndpoint(t *testing.T) {
	e := someEndpoint()
	bytes := e.append(nil)
	require.Len(t, bytes, endpointSize)
	var back endpoint
	require.NoError(t, back.parse(bytes))
	require.Equal(t, e, back)
	for _, bad := range []func(b []byte) []byte{
		func(b []byte) []byte { return nil },
		func(b []byte) []byte { return b[:endpointSize-1] },
		func(b []byte) []byte { return append(b, 0) },
		func(b []byte) []byte { b[0] = 1; return b },
		func(b []byte) []byte { b[4] = 1; return b },
		func(b []byte) []byte { b[26] = 0; return b },
		func(b []byte) []byte { b[26] = 6; return b },
		func(b []byte) []byte { b[29] = 2; return b },
	} {
		require.ErrorIs(t, new(endpoint).parse(bad(e.append(nil))), ErrProtocol)
	}
}

func FuzzEndpoint(f *testing.F) {
	e := someEndpoint()
	f.Add(e.append(nil))
	f.Fuzz(func(t *testing.T, bytes []byte) {
		var e, again endpoint
		allocs.AtMost(t, 2<<10, func() { _ = again.parse(bytes) })
		if e.parse(bytes) == nil {
			require.NoError(t, again.parse(e.append(nil)))
			require.Equal(t, e, again)
		}
	})
}

// Both ends come to the same limits, whichever combines them.
func TestCombine(t *testing.T) {
	near, far := someEndpoint(), someEndpoint()
	far.mtu, far.readsOut, far.readsIn = 5, 8, 2
	var here, there path
	require.NoError(t, here.combine(&near, &far))
	require.NoError(t, there.combine(&far, &near))
	require.Equal(t, mtu(3), here.mtu)
	require.Equal(t, mtu(3), there.mtu)
	require.EqualValues(t, 2, here.readsOut)
	require.EqualValues(t, 4, here.readsIn)
	require.Equal(t, here.readsOut, there.readsIn)
	require.Equal(t, here.readsIn, there.readsOut)
	require.Equal(t, far, here.peer)
	require.Equal(t, near.packet, here.packet)

	here.global, far.gid = true, [16]byte{}
	require.ErrorContains(t, here.combine(&near, &far), "demands a global address (GID) of the peer")
	far.gid, far.kind = near.gid, gidRoCE1
	require.ErrorContains(t, here.combine(&near, &far), "this end's GID 10.0.0.7 is RoCE v2, the peer's 10.0.0.7 is RoCE v1")
	far.ethernet = false
	require.ErrorContains(t, here.combine(&near, &far), "one end's port is Ethernet (RoCE), the other's InfiniBand")
}

func TestTimeout(t *testing.T) {
	for d, want := range map[time.Duration]uint8{
		1: 1, 4096: 1, 8192: 1, 8193: 2, 16384: 2, defaultAnswer: 16, defaultAnswer + 1: 17, time.Second: 18, 4096 << 31: 31,
	} {
		got, err := timeoutOf(d)
		require.NoError(t, err)
		require.Equal(t, want, got, "%v", d)
	}
	for _, d := range []time.Duration{0, -1, 4096<<31 + 1} {
		_, err := timeoutOf(d)
		require.ErrorContains(t, err, "answers after")
	}
}

// A transition that fails names the attribute.
func TestExplain(t *testing.T) {
	p := path{port: 1, gidIndex: 3, mtu: 5, readsOut: 16, readsIn: 16, timeout: 16, global: true}
	p.peer = someEndpoint()
	good := port{number: 1, state: portActive, mtu: 5}
	gids := []gid{entry6(3, gidRoCE2, "10.0.0.8")}
	l := limits{readsOut: 16, readsIn: 16}
	for _, c := range []struct {
		state  string
		change func(p *path, a *port, l *limits, gids *[]gid)
		cause  error
		want   string
	}{
		{"INIT", func(_ *path, a *port, _ *limits, _ *[]gid) { a.state = 1 }, syscall.EINVAL, "the port is down, and has to be active"},
		{"RTR", func(_ *path, a *port, _ *limits, _ *[]gid) { a.mtu = 3 }, syscall.EINVAL, "path MTU 4096, the port takes at most 1024"},
		{"RTR", func(_ *path, _ *port, l *limits, _ *[]gid) { l.readsIn = 4 }, syscall.EINVAL, "max_dest_rd_atomic 16, the card takes at most 4"},
		{"RTR", func(_ *path, _ *port, _ *limits, gids *[]gid) { *gids = nil }, syscall.EINVAL, "sgid_index 3: there is no GID 3; there are none: give the port's network interface an address"},
		{"RTR", func(p *path, _ *port, _ *limits, _ *[]gid) { p.global, p.peer.lid = false, 0 }, syscall.EINVAL, "dlid 0: the peer's port has no LID; a subnet manager has to give it one"},
		{"RTR", func(*path, *port, *limits, *[]gid) {}, syscall.ENETUNREACH, "dgid 10.0.0.7: this host knows no way there, or nobody answers at that address"},
		{"RTR", func(*path, *port, *limits, *[]gid) {}, syscall.EINVAL, "asked for were path MTU 4096, peer's queue pair 0x12, sgid_index 3, dgid 10.0.0.7, dlid 3, max_dest_rd_atomic 16"},
		{"RTS", func(_ *path, _ *port, l *limits, _ *[]gid) { l.readsOut = 1 }, syscall.EINVAL, "max_rd_atomic 16, the card takes at most 1"},
		{"RTS", func(p *path, _ *port, _ *limits, _ *[]gid) { p.timeout = 32 }, syscall.EINVAL, "timeout 32, at most 31 is allowed"},
		{"RTS", func(*path, *port, *limits, *[]gid) {}, syscall.EINVAL, "asked for were port 1, timeout 16, retry_cnt 6, rnr_retry 7, max_rd_atomic 16"},
	} {
		p, a, l, gids := p, good, l, gids
		c.change(&p, &a, &l, &gids)
		require.Equal(t, c.want, p.explain(c.state, a, gids, l, c.cause))
	}
	err := &TransitionError{Device: "mlx5_0", Port: 1, QueuePair: 0x12, State: "RTR", Reason: "path MTU 4096, the port takes at most 1024", Cause: syscall.EINVAL}
	require.EqualError(t, err, "ibv: mlx5_0 port 1: queue pair 0x12 does not become RTR: path MTU 4096, the port takes at most 1024: invalid argument")
	require.ErrorIs(t, err, syscall.EINVAL)
}

//go:build ibverbs && cgo && linux

package ibv

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func entry6(index int, kind gidKind, ip string) gid {
	return gid{index: index, kind: kind, address: netip.MustParseAddr(ip).As16()}
}

func TestChooseGID(t *testing.T) {
	linkLocal1, linkLocal2 := entry6(0, gidRoCE1, "fe80::1"), entry6(1, gidRoCE2, "fe80::1")
	mapped1, mapped2 := entry6(2, gidRoCE1, "10.0.0.7"), entry6(3, gidRoCE2, "10.0.0.7")
	second, global := entry6(5, gidRoCE2, "10.0.1.7"), entry6(6, gidRoCE2, "2001:db8::7")
	all := []gid{linkLocal1, linkLocal2, mapped1, mapped2, second, global}
	for _, c := range []struct {
		entries []gid
		wanted  string
		want    int
		text    string
	}{
		{all, "", 3, ""},
		{all[:3], "", 1, ""},
		{[]gid{linkLocal1, mapped1}, "", 2, ""},
		{[]gid{linkLocal2, global}, "", 6, ""},
		{[]gid{entry6(0, gidInfiniBand, "fe80::2")}, "", 0, ""},
		{all, "0", 0, ""},
		{all, "5", 5, ""},
		{all, "10.0.0.7", 3, ""},
		{all, "::ffff:10.0.0.7", 3, ""},
		{all, "fe80::1", 1, ""},
		{nil, "", 0, "the table of GIDs is empty; give the port's network interface an address"},
		{nil, "1", 0, "there is no GID 1; there are none: give the port's network interface an address"},
		{all[2:4], "4", 0, "there is no GID 4; there are 2 (10.0.0.7, RoCE v1), 3 (10.0.0.7, RoCE v2)"},
		{all[:1], "10.0.0.8", 0, "there is no GID 10.0.0.8; there are 0 (fe80::1, RoCE v1)"},
		{all, "eth0", 0, `GID is "eth0", must be an index or an IP address`},
	} {
		got, err := chooseGID(c.entries, c.wanted)
		if c.text != "" {
			require.EqualError(t, err, c.text)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got.index, "of %v, %q", c.entries, c.wanted)
	}
}

func TestParseDevice(t *testing.T) {
	for text, want := range map[string]struct {
		name string
		port int
	}{"": {"", 0}, "mlx5_0": {"mlx5_0", 0}, "mlx5_0:2": {"mlx5_0", 2}, "rxe0:255": {"rxe0", 255}} {
		name, port, err := parseDevice(text)
		require.NoError(t, err, text)
		require.Equal(t, want.name, name)
		require.Equal(t, want.port, port)
	}
	for _, text := range []string{":", ":1", "a:", "a:0", "a:256", "a:x", "a:-1"} {
		_, _, err := parseDevice(text)
		require.ErrorContains(t, err, "must be a card's name", text)
	}
}

func TestRateOf(t *testing.T) {
	require.Equal(t, 12.5e9, rateOf(64, 16))
	require.Equal(t, 1e9, rateOf(1, 2))
	require.Equal(t, 50e9, rateOf(128, 2))
	require.Zero(t, rateOf(0, 1))
	require.Zero(t, rateOf(1, 0))
}

//go:build linux

package job

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/shortage"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
)

// A network is not opened where this rank has too few descriptors left to reach the others, and then has closed what it opened.
func TestNetworkDescriptors(t *testing.T) {
	one, err := newSettings([]Option{WithAddress("127.0.0.1")})
	require.NoError(t, err)
	two, err := newSettings([]Option{WithAddress("127.0.0.1,127.0.0.1")})
	require.NoError(t, err)
	for _, c := range []struct {
		name   string
		rails  Settings
		counts rankCounts
		needed int
	}{
		{"no other rank", one, rankCounts{}, 0},
		{"another rank", one, rankCounts{others: 1}, 5},
		{"another rank, over two rails", two, rankCounts{others: 1}, 10},
		{"seven", one, rankCounts{others: 7}, 17},
		{"a thousand", one, rankCounts{others: 1000}, 131},
		{"a thousand, over two rails", two, rankCounts{others: 1000}, 134},
		{"one, and two of this host", one, rankCounts{neighbors: 2, others: 1}, shm.Descriptors(2) + 5},
	} {
		taken, o := 0, opening{device: tcpDevice, counts: c.counts}
		open := func() error {
			device, err := openNetwork(t.Context(), o, c.rails)
			if err != nil {
				return err
			}
			taken = shortage.OpenDescriptors(t)
			return device.Close()
		}
		before := shortage.OpenDescriptors(t)
		require.NoError(t, open(), c.name)
		require.Equal(t, before, shortage.OpenDescriptors(t), c.name)
		require.LessOrEqual(t, taken-before, c.rails.addresses()*openDescriptors, c.name)
		enough := taken - before + c.needed
		for left := enough - min(c.needed, 1); left <= enough; left++ {
			end := shortage.Begin(t, left)
			err := open()
			end()
			if left == enough {
				require.NoError(t, err, c.name)
				continue
			}
			require.ErrorIs(t, err, verbs.ErrShortage, c.name)
			require.ErrorContains(t, err, fmt.Sprintf("%d file descriptors are needed, %d are left: raise RLIMIT_NOFILE (ulimit -n), which is ", c.needed, c.needed-1), c.name)
			require.Equal(t, before, shortage.OpenDescriptors(t), c.name)
		}
	}
}

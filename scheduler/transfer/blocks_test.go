package transfer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// blocks are those of an operation.
func blocks(m *transfer.Model, bytes, longest int) []int { return lengthsOf(m.Blocks(bytes, longest)) }

func lengthsOf(b transfer.Blocks) []int {
	var all []int
	for n := b.Next(); n > 0; n = b.Next() {
		all = append(all, n)
	}
	return all
}

// Blocks add up, fit a message, and end between elements.
func TestBlocks(t *testing.T) {
	everyProfile(t, func(t *testing.T, c verbs.Costs) {
		m := transfer.NewModel(&c, 32<<10)
		for _, longest := range []int{1, 1000, 32727} {
			for bytes := range lengths(16 << 20) {
				if bytes/longest > 1<<12 {
					continue
				}
				sum := 0
				for _, n := range blocks(m, bytes, longest) {
					if sum%64 != 0 || n > max(longest, 64) {
						t.Fatalf("%d bytes by %d: a block of %d at %d", bytes, longest, n, sum)
					}
					sum += n
				}
				require.Equal(t, bytes, sum)
			}
		}
	})
}

// They are short where a copy is seen.
func TestBlocksOfBothEnds(t *testing.T) {
	m := transfer.NewModel(&simple, 32<<10)
	all := blocks(m, mega, 32<<10)
	require.Less(t, all[0], 1024)
	require.Less(t, all[len(all)-1], 1024)
	require.Equal(t, 32<<10, all[len(all)/2])
	for i := range all[1 : len(all)/2] {
		require.LessOrEqual(t, all[i], all[i+1])
	}

	unknown := transfer.NewModel(&verbs.Costs{}, 32<<10)
	require.Equal(t, []int{32 << 10, 32 << 10, 1000}, blocks(unknown, 64<<10+1000, 32<<10))
	require.Empty(t, blocks(m, 0, 64))
}

// Without a model all but the last are as long as a message has room for.
func TestLongBlocks(t *testing.T) {
	require.Equal(t, []int{32 << 10, 32 << 10, 1000}, lengthsOf(transfer.LongBlocks(64<<10+1000, 32<<10)))
	require.Equal(t, []int{960, 960, 80}, lengthsOf(transfer.LongBlocks(2000, 1000)))
	require.Equal(t, []int{64, 36}, lengthsOf(transfer.LongBlocks(100, 1)))
	require.Empty(t, lengthsOf(transfer.LongBlocks(-1, 64)))
}

// The sender, the wire and the receiver take no longer with them than with blocks of any one length, or hardly.
func TestBlocksTakeLeast(t *testing.T) {
	everyProfile(t, func(t *testing.T, c verbs.Costs) {
		if c.CopyBandwidth == 0 || c.Bandwidth == 0 {
			return // nothing is known
		}
		m := transfer.NewModel(&c, 32<<10)
		for bytes := 4 << 10; bytes <= 4<<20; bytes *= 2 {
			best, which := 0.0, 0
			for length := 256; length <= 32<<10; length *= 2 {
				var equal []int
				for left := bytes; left > 0; left -= length {
					equal = append(equal, min(length, left))
				}
				if took := relay(&c, equal); best == 0 || took < best {
					best, which = took, length
				}
			}
			require.LessOrEqual(t, relay(&c, blocks(m, bytes, 32<<10)), 1.1*best, "%d bytes, against blocks of %d", bytes, which)
		}
	})
}

// relay is what blocks take that are copied, pass the wire, and are combined.
func relay(c *verbs.Costs, all []int) float64 {
	var sender, wire, receiver float64
	processor := func(n int) float64 {
		return float64(c.Post+c.CopyLatency+c.Serve/2) + float64(n)*1e9/c.CopyBandwidth
	}
	for _, n := range all {
		sender += processor(n)
		wire = max(wire, sender) + float64(n)*1e9/c.Bandwidth + float64(c.Gap)
		receiver = max(receiver, wire) + processor(n)
	}
	return receiver
}

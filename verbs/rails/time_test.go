package rails_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/rails"
)

// takes returns how long n requests of a size take over a number of cards.
func takes(t testing.TB, profile string, without rails.Optimization, cards, bytes, count int, op verbs.Opcode) (took time.Duration) {
	oneSided(t, profile, without, cards, bytes*count, func(near, far *node) {
		var requests []verbs.SendRequest
		for i := range count {
			requests = append(requests, near.request(op, 0, i*bytes, bytes, far, i*bytes))
		}
		begun := near.Now()
		require.Equal(t, verbs.StatusSuccess, near.do(requests...).Status)
		took = near.Now() - begun
	})
	return took
}

// A long request takes half the time over two cards and a third over three, but for the time that does not
// depend on its length. A short one, or one without striping, takes as long as over one card.
func TestLongTakesHalf(t *testing.T) {
	for _, profile := range []string{"ndr-2024", "connectx-ddr-2009"} {
		for _, op := range []verbs.Opcode{verbs.OpRDMAWrite, verbs.OpRDMARead} {
			const long, short = 16 << 20, 4 << 10
			off := takes(t, profile, rails.Striping, 2, long, 1, op)
			for cards := 2; cards <= 3; cards++ {
				on := takes(t, profile, 0, cards, long, 1, op)
				t.Logf("%s, %v of 16 MiB: %v over 1 card, %v over %d", profile, op, off, on, cards)
				require.InDelta(t, 1/float64(cards), float64(on)/float64(off), 0.02)
			}
			require.Equal(t, takes(t, profile, rails.Striping, 2, short, 1, op), takes(t, profile, 0, 2, short, 1, op))
		}
	}
}

// The shortest request that is striped takes no longer than over one card, nor does a shorter one.
func TestStripingPays(t *testing.T) {
	for bytes := 1 << 10; bytes <= 1<<20; bytes *= 2 {
		on := takes(t, "ndr-2024", 0, 2, bytes, 1, verbs.OpRDMAWrite)
		off := takes(t, "ndr-2024", rails.Striping, 2, bytes, 1, verbs.OpRDMAWrite)
		t.Logf("%7d bytes: %v with striping, %v without", bytes, on, off)
		require.LessOrEqual(t, on, off)
	}
}

// Many requests of which none is long enough alone take half the time together.
func TestManyTakeHalf(t *testing.T) {
	for _, op := range []verbs.Opcode{verbs.OpRDMAWrite, verbs.OpRDMARead} {
		off := takes(t, "ndr-2024", rails.Striping, 2, 64<<10, 64, op)
		on := takes(t, "ndr-2024", 0, 2, 64<<10, 64, op)
		t.Logf("64 times %v of 64 KiB: %v over 1 card, %v over 2", op, off, on)
		require.InDelta(t, 0.5, float64(on)/float64(off), 0.05)
	}
}

func BenchmarkLongWrite(b *testing.B) {
	for _, bytes := range []int{64 << 10, 256 << 10, 1 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("%dKiB", bytes>>10), func(b *testing.B) {
			var off, on time.Duration
			for b.Loop() {
				off, on = takes(b, "ndr-2024", rails.Striping, 2, bytes, 1, verbs.OpRDMAWrite), takes(b, "ndr-2024", 0, 2, bytes, 1, verbs.OpRDMAWrite)
			}
			b.ReportMetric(float64(off)/1e3, "µs-off")
			b.ReportMetric(float64(on)/1e3, "µs-on")
		})
	}
}

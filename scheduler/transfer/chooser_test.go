package transfer_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// once are the protocols that keep nothing.
var once = all[:5]

// Nothing takes less time than what is chosen.
func TestBest(t *testing.T) {
	everyProfile(t, func(t *testing.T, c verbs.Costs) {
		if c.CopyBandwidth == 0 {
			return // nothing is known
		}
		for _, stage := range []int{64 << 10, mega} {
			m := transfer.NewModel(&c, stage)
			for set := transfer.Set(1); set < 1<<len(once); set++ {
				for _, write := range []bool{true, false} {
					chooser := m.Chooser(set, write)
					for bytes := range lengths(1 << 30) {
						best := chooser.Best(bytes)
						took := m.Time(best, write, bytes)
						for _, p := range once {
							if !set.Has(best) || set.Has(p) && took > 1.003*m.Time(p, write, bytes) {
								t.Fatalf("%v and %v, %d bytes, write %v, stage %d, of %v", best, p, bytes, write, stage, set)
							}
						}
					}
				}
			}
		}
	})
}

// Of a card of which nothing is known, what fits the stage is copied.
func TestBestUnknown(t *testing.T) {
	m := transfer.NewModel(&verbs.Costs{}, 64<<10)
	c := m.Chooser(transfer.All, true)
	require.Equal(t, transfer.Copy, c.Best(64<<10))
	require.Equal(t, transfer.Superpipeline, c.Best(64<<10+1))
	require.Equal(t, transfer.Superpipeline, c.Best(1<<30))
	// 12 KB, and each half as long again as the one before: scaled to the end.
	pieces := cut(m, transfer.Superpipeline, true, 57<<10, 0)
	require.Equal(t, []transfer.Piece{{12288, true}, {18432, true}, {27648, true}}, pieces)
}

// What is registered for nothing need not be copied.
func TestBestRegistersForNothing(t *testing.T) {
	c := simple
	c.Register, c.RegisterPage, c.Deregister, c.DeregisterPage = 0, 0, 0, 0
	m := transfer.NewModel(&c, 64<<10)
	for _, write := range []bool{true, false} {
		chooser := m.Chooser(transfer.All, write)
		for bytes := range lengths(1 << 30) {
			require.Equal(t, transfer.Register, chooser.Best(bytes), "%d bytes", bytes)
		}
	}
}

func TestBestOfNothing(t *testing.T) {
	m := transfer.NewModel(&simple, 64<<10)
	require.Equal(t, transfer.Copy, m.Chooser(transfer.Of(transfer.Cache), true).Best(1))
	require.Equal(t, transfer.Copy, m.Chooser(0, true).Best(mega))
}

func TestNames(t *testing.T) {
	for _, p := range all {
		got, err := transfer.Parse(p.String())
		require.NoError(t, err)
		require.Equal(t, p, got)
	}
	require.Equal(t, "copy,cache", transfer.Of(transfer.Copy, transfer.Cache).String())
	for s := range transfer.All + 1 {
		var got transfer.Set
		for name := range strings.SplitSeq(s.String(), ",") {
			if s == 0 {
				break
			}
			p, err := transfer.Parse(name)
			require.NoError(t, err)
			got |= transfer.Of(p)
		}
		require.Equal(t, s, got)
	}
	_, err := transfer.Parse("bounce")
	require.EqualError(t, err, `transfer: no protocol "bounce"; allowed are copy, copy-pipeline, superpipeline, register, pipeline, caching-pipeline, cache`)
	require.Equal(t, "protocol 9", transfer.Protocol(9).String())
	require.False(t, transfer.All.Has(9))
}

func BenchmarkBest(b *testing.B) {
	c := modelOf(b, "ndr-2024", 64<<10).Chooser(transfer.All, true)
	b.ReportAllocs()
	sum := 0
	for i := range b.N {
		sum += int(c.Best(i & (16*mega - 1)))
	}
	_ = sum
}

func BenchmarkCut(b *testing.B) {
	m := modelOf(b, "graphene-ddr", mega)
	b.ReportAllocs()
	for b.Loop() {
		pieces := m.Cut(transfer.Superpipeline, true, mega)
		for _, ok := pieces.Next(0); ok; _, ok = pieces.Next(0) {
		}
	}
}

func BenchmarkChooser(b *testing.B) {
	c := costsOf(b, "graphene-ddr")
	for b.Loop() {
		transfer.NewModel(&c, 64<<10).Chooser(transfer.All, true)
	}
}

package transfer_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// longestRegistered is the longest piece that Pipeline and CachingPipeline register.
const longestRegistered = 16 << 20

// check tells what is wrong with the pieces of an operation.
func check(t *testing.T, m *transfer.Model, stage int, p transfer.Protocol, write bool, bytes int, address uint64) {
	t.Helper()
	pieces := cut(m, p, write, bytes, address)
	sum, at, registered := 0, address, false
	// The checks are plain: there are millions of pieces.
	must := func(holds bool, what string) {
		if !holds {
			t.Fatalf("%s: %v of %d bytes at %#x, write %v, stage %d: %v", what, p, bytes, address, write, stage, pieces)
		}
	}
	for i, piece := range pieces {
		must(piece.Bytes > 0, "a piece is empty")
		sum += piece.Bytes
		at += uint64(piece.Bytes)
		switch last := i == len(pieces)-1; {
		case piece.Copied:
			must(!registered, "copies come first")
			must(piece.Bytes <= stage, "a copy fits the stage")
		case p == transfer.Pipeline:
			must(piece.Bytes <= longestRegistered, "a piece is no longer than that")
			must(last || at%4096 == 0, "a piece ends with a page")
		case p == transfer.CachingPipeline:
			must(piece.Bytes <= m.Piece(), "a piece is no longer than those of the model")
			must(last || at%uint64(m.Piece()) == 0, "a piece ends with one of the model's")
			must((at-uint64(piece.Bytes))/uint64(m.Piece()) == (at-1)/uint64(m.Piece()), "a piece lies in one of the model's")
		case p == transfer.Register || p == transfer.Cache:
			must(len(pieces) == 1, "all is one piece")
		default:
			must(false, "nothing is registered")
		}
		registered = registered || !piece.Copied
	}
	must(sum == max(bytes, 0), "the pieces add up")
}

func TestPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	everyProfile(t, func(t *testing.T, c verbs.Costs) {
		for _, stage := range []int{1 << 10, 5000, 64 << 10, mega} {
			m := transfer.NewModel(&c, stage)
			for bytes := range lengths(64 * mega) {
				for _, p := range all {
					if stage < 64<<10 && bytes > mega {
						continue
					}
					check(t, m, stage, p, bytes%2 == 0, bytes, random.Uint64()>>16)
				}
			}
		}
	})
}

func TestNothing(t *testing.T) {
	m := transfer.NewModel(&simple, mega)
	for _, p := range all {
		require.Empty(t, cut(m, p, true, 0, 1))
		require.Empty(t, cut(m, p, false, -1, 1))
	}
}

// The pieces of a put grow, those of a get shrink, by no more than the growth, but for a cache line at each end.
func TestPiecesGrow(t *testing.T) {
	everyProfile(t, func(t *testing.T, c verbs.Costs) {
		for _, stage := range []int{64 << 10, mega} {
			m := transfer.NewModel(&c, stage)
			for bytes := range lengths(64 * mega) {
				puts, gets := cut(m, transfer.Superpipeline, true, bytes, 0), cut(m, transfer.Superpipeline, false, bytes, 0)
				for i := range len(puts) - 1 {
					one, next := puts[i].Bytes, puts[i+1].Bytes
					if next < one-128 || float64(next) > m.Growth()*float64(one+64)+128 {
						t.Fatalf("%d bytes, stage %d: a put's piece of %d after one of %d", bytes, stage, next, one)
					}
				}
				for i := range len(gets) - 1 {
					if gets[i+1].Bytes > gets[i].Bytes+128 {
						t.Fatalf("%d bytes, stage %d: a get's piece of %d after one of %d", bytes, stage, gets[i+1].Bytes, gets[i].Bytes)
					}
				}
				require.InDelta(t, len(puts), len(gets), 1)
			}
		}
	})
}

// There is no short piece at the end of what has one length.
func TestPiecesAreEven(t *testing.T) {
	m := modelOf(t, "graphene-ddr", 64<<10)
	for bytes := range lengths(64 * mega) {
		pieces := cut(m, transfer.CopyPipeline, true, bytes, 0)
		for _, piece := range pieces[1:] {
			require.InDelta(t, pieces[0].Bytes, piece.Bytes, 64*float64(len(pieces)))
		}
		require.Equal(t, (bytes+64<<10-1)/(64<<10), len(cut(m, transfer.Copy, true, bytes, 0)), "in as few as can be")
	}
}

// Nothing is allocated on the way of an operation.
func TestAllocations(t *testing.T) {
	m := modelOf(t, "graphene-ddr", mega)
	c := m.Chooser(transfer.All, true)
	sum := 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for p := transfer.Copy; p <= transfer.Cache; p++ {
			for _, write := range []bool{true, false} {
				sum += int(m.Time(p, write, 8*mega)) + int(c.Best(8*mega))
				pieces := m.Cut(p, write, 8*mega)
				for piece, ok := pieces.Next(4096); ok; piece, ok = pieces.Next(4096) {
					sum += piece.Bytes
				}
			}
		}
	}))
	require.Positive(t, sum)
}

// Whatever a card pretends to cost, pieces add up and times are numbers.
func FuzzCut(f *testing.F) {
	f.Add(int64(100), int64(200), int64(1000), 1e9, 2e9, int64(10000), int64(100), int64(5000), int64(50), 65536, 1<<20, uint64(12345))
	f.Add(int64(0), int64(0), int64(0), 0.0, 0.0, int64(0), int64(0), int64(0), int64(0), 0, 1<<40, uint64(0))
	f.Add(int64(-1), int64(1<<62), int64(1<<62), 1e300, 1e-300, int64(1<<62), int64(1<<62), int64(-5), int64(1), 1, 1<<62, uint64(1<<63))
	f.Add(int64(-1), int64(1<<62), int64(1<<62), 1e300, 1e-300, int64(1<<62), int64(1<<62), int64(-5), int64(1), 1, 1<<62+11, uint64(1<<63))
	f.Add(int64(1), int64(1), int64(1), 1e-300, 1e300, int64(1), int64(0), int64(0), int64(0), 1<<62, 1<<50, ^uint64(0))
	f.Fuzz(func(t *testing.T, post, gap, latency int64, wire, copies float64, register, registerPage, deregister, deregisterPage int64, stage, bytes int, address uint64) {
		c := verbs.Costs{
			Post: time.Duration(post), Gap: time.Duration(gap), Latency: time.Duration(latency), ReadLatency: time.Duration(latency),
			Bandwidth: wire, CopyBandwidth: copies, CopyLatency: time.Duration(gap),
			Register: time.Duration(register), RegisterPage: time.Duration(registerPage),
			Deregister: time.Duration(deregister), DeregisterPage: time.Duration(deregisterPage),
		}
		m := transfer.NewModel(&c, stage)
		require.GreaterOrEqual(t, m.Depth(), 2)
		for _, write := range []bool{true, false} {
			chooser := m.Chooser(transfer.All, write)
			require.True(t, chooser.Best(bytes) <= transfer.Pipeline)
			for _, p := range all {
				took := m.Time(p, write, bytes)
				require.True(t, took >= 0 && took < 1e300, "%v takes %v", p, took)
				// As many pieces as it has are taken from what is very long.
				at, sum := address, 0
				pieces := m.Cut(p, write, bytes)
				for range 1000 {
					piece, ok := pieces.Next(at)
					if !ok {
						require.Equal(t, max(bytes, 0), sum)
						break
					}
					require.Positive(t, piece.Bytes)
					require.True(t, !piece.Copied || piece.Bytes <= max(stage, 1))
					sum += piece.Bytes
					at += uint64(piece.Bytes)
					require.LessOrEqual(t, sum, bytes)
				}
			}
		}
	})
}

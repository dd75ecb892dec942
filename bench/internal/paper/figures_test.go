package paper

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/internal/testsize"
)

// What the RDMA channel saves is the paper's, but for the rate of small messages: the simulated card
// looks for a receive while it places what comes next.
func TestChannelFigures(t *testing.T) {
	for _, p := range []*Plot{at(t, "D11", 4, 256), at(t, "D12", 4, 256), at(t, "D14", 4, 256), at(t, "D20", 16, 128)} {
		for _, v := range p.Verdicts {
			if v.Case != "gain_smallest" {
				assert.True(t, v.Within, "%s of %s: theirs %s, ours %v", v.Case, p.figure.Name(), v.Theirs, v.Ours)
			} else {
				assert.Greater(t, v.Ours, 30.0)
			}
		}
	}
}

// Collectives gain by the RDMA channel about what their messages do.
func TestCollectivesGainByTheChannel(t *testing.T) {
	for _, id := range benchtest.SomeOf("D16", "D15", "D17") {
		xs := map[string][]int{"D15": {2, 8}, "D16": {8, 256}, "D17": {8, 256}}
		var some []int
		for _, i := range testsize.Turns(0, len(xs[id]), 1) {
			some = append(some, xs[id][i])
		}
		slices.Sort(some)
		p := at(t, id, some...)
		for i, saved := range p.improvements() {
			assert.Greater(t, saved, 10.0, "%s at %d", p.figure.Name(), p.X[i])
			assert.Less(t, saved, 26.0, "%s at %d", p.figure.Name(), p.X[i])
		}
	}
}

// What the papers' mechanisms bring, at sizes that show it. All of it is in bench paper.
func TestMechanismsBringWhatThePapersSay(t *testing.T) {
	figures, large := []string{"A7a", "A8b", "A9a", "A10b"}, []int{64 << 10, 4 << 10, 16 << 10, 16 << 10}
	for _, i := range testsize.Turns(0, len(figures), 2) {
		p := at(t, figures[i], 64, large[i])
		for _, v := range p.Verdicts {
			if v.Case != "large_over_small" {
				assert.True(t, v.Within, "%s of %s: theirs %s, ours %v", v.Case, p.figure.Name(), v.Theirs, v.Ours)
			}
		}
	}
}

// What is registered because it is used frequently saves a copy of what is long, and nothing where
// the card takes it with the request.
func TestFrequentBuffersAreWorthTheirRegistration(t *testing.T) {
	for _, id := range benchtest.SomeOf("B6a", "B7b", "B2", "B6b", "B7a") {
		switch id {
		case "B2":
			least := at(t, id, 5<<10, 8<<10)
			assert.Greater(t, least.valueAt("here", 5<<10), least.valueAt("here", 8<<10))
		case "B6a", "B6b":
			p := at(t, id, 128, 8<<10)
			assert.InDelta(t, 0, p.improvedAt(128), 2, id)
			assert.Greater(t, p.improvedAt(8<<10), 16.0, id)
		default:
			p := at(t, id, 256, 8<<10)
			assert.Less(t, p.improvedAt(256), p.improvedAt(8<<10), id)
			assert.Less(t, p.improvedAt(8<<10), 33.0, "not all uses are of a buffer that is registered")
		}
	}
}

// The same of messages, whose receivers go on copying, one by one and down a tree.
func TestMessagesOfFrequentBuffersAreNotCopied(t *testing.T) {
	all := map[string]func(*testing.T){"one by one": checkFrequentMessages, "of many buffers": checkSpectrumOfMessages, "down a tree": checkFrequentCollectives}
	for _, name := range benchtest.SomeOf("one by one", "of many buffers", "down a tree") {
		t.Run(name, all[name])
	}
}

func checkFrequentMessages(t *testing.T) {
	fast, sent := at(t, "B4a", 128, 8<<10), at(t, "B4b", 128, 8<<10)
	for _, p := range []*Plot{fast, sent} {
		assert.InDelta(t, 0, p.improvedAt(128), 2, p.figure.Name())
		assert.Greater(t, p.improvedAt(8<<10), 11.0, p.figure.Name())
		assert.Less(t, p.improvedAt(8<<10), at(t, "B6a", 8<<10).improvedAt(8<<10), "%s: a put has one copy only", p.figure.Name())
	}
	assert.Less(t, sent.improvedAt(8<<10), fast.improvedAt(8<<10))
	assert.Less(t, fast.valueAt("off", 128), sent.valueAt("off", 128), "rings are the fast path")
	least := at(t, "B2fast", 512, 8<<10)
	assert.Greater(t, least.valueAt("here", 512), 10*least.valueAt("here", 8<<10))

}

func checkSpectrumOfMessages(t *testing.T) {
	spectrum, fast := at(t, "B5a", 256, 8<<10), at(t, "B4a", 8<<10)
	assert.Greater(t, spectrum.valueAt("apart", 256), spectrum.valueAt("off", 256), "a page for each short buffer does not pay")
	assert.Less(t, spectrum.valueAt("on", 256), spectrum.valueAt("off", 256), "a page for many does")
	assert.Less(t, spectrum.improvedAt(8<<10), fast.improvedAt(8<<10))

}

func checkFrequentCollectives(t *testing.T) {
	broadcast, scatter, fast := at(t, "B8a", 4<<10, 5<<10), at(t, "B8b", 4<<10, 5<<10), at(t, "B4a", 8<<10)
	assert.Greater(t, broadcast.improvedAt(4<<10), fast.improvedAt(8<<10), "more than one copy is saved")
	for _, v := range append(broadcast.Verdicts, scatter.Verdicts...) {
		assert.True(t, v.Within, "%s: theirs %s, ours %v", v.Case, v.Theirs, v.Ours)
	}
}

// Copies in a superpipeline are nearly as good as no copies, at once; a registration is not, before
// it is used again.
func TestSuperpipelineIsAsGoodAsRegisteredBuffers(t *testing.T) {
	naive := at(t, "C2", 64<<10, 1<<20)
	assert.Less(t, naive.share("register", "raw", 64<<10), 40.0)
	assert.Less(t, naive.share("register", "raw", 64<<10), naive.share("register", "raw", 1<<20))
	assert.Less(t, naive.share("copy", "raw", 64<<10), 75.0)
	pipelines := at(t, "C6", 16<<10, 128<<10)
	assert.Greater(t, pipelines.share("super", "raw", 16<<10), 85.0)
	assert.Greater(t, pipelines.share("super", "raw", 128<<10), 95.0)
	assert.Greater(t, pipelines.share("super", "even", 128<<10), 100.0)
	assert.Greater(t, pipelines.share("even", "copy", 128<<10), 100.0)
	touched := at(t, "C7", 64<<10, 256<<10)
	assert.InDelta(t, 100, touched.share("super_1", "super", 64<<10), 1)
	assert.Less(t, touched.share("cache_1", "cache", 64<<10), 45.0)
	assert.Greater(t, touched.share("super_1", "cache_1", 256<<10), 100.0)
}

// Registering in pieces hides what registering a buffer as a whole shows, unless it is used again.
func TestPipelinesAreForBuffersThatAreSeldomUsed(t *testing.T) {
	for _, check := range benchtest.SomeOf(checkOnce, checkReused) {
		check(t)
	}
}

func checkOnce(t *testing.T) {
	once := at(t, "E5", 256<<10, 8<<20)
	assert.Greater(t, once.improvedAt(256<<10), once.improvedAt(8<<20))
	assert.Greater(t, once.improvedAt(8<<20), 2.0)
}

func checkReused(t *testing.T) {
	reused := at(t, "E6", 1, 30)
	assert.Greater(t, reused.share("caching", "cache", 1), 100.0)
	assert.Less(t, reused.share("cache", "pipeline", 1), 100.0)
	assert.Greater(t, reused.share("cache", "pipeline", 30), 100.0)
	assert.Equal(t, 30.0, usesToReach(reused))
}

// What the library chooses is about as good as the best of the ways, whichever that is, once it has
// learned.
func TestTheLibraryChoosesWellInTraces(t *testing.T) {
	for _, trace := range benchtest.SomeOf("many", "sort", "one") {
		uses := map[string]int{"one": 5000, "many": 34_000, "sort": 40_000}
		p := at(t, "trace"+trace, uses[trace])
		assert.LessOrEqual(t, autoOfBest(p), 105.0, trace)
		switch trace {
		case "many":
			assert.Less(t, p.last("cache"), p.last("copy"))
		case "sort":
			assert.Greater(t, p.last("cache"), 2*p.last("copy"))
		}
	}
}

func TestTheSameSeedGivesTheSameFigure(t *testing.T) {
	for _, id := range benchtest.SomeOf("A8a", "E5") {
		xs := map[string][]int{"A8a": {8, 2048}, "E5": {1 << 20, 8 << 20}}[id]
		assert.Equal(t, at(t, id, xs...).Curves, at(t, id, xs...).Curves)
	}
}

// at is a figure at a few sizes only.
func at(t *testing.T, id string, xs ...int) *Plot {
	t.Helper()
	benchtest.OnlyVirtual(t)
	for _, f := range Figures() {
		if f.Name() == id {
			f.xs = xs
			p, err := f.Reproduce(t.Context(), &Options{Seed: 1, Timeout: time.Minute})
			require.NoError(t, err)
			return p
		}
	}
	t.Fatalf("no figure %s", id)
	return nil
}

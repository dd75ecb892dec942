package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/chart"
	"github.com/onesided/rma/bench/internal/chart/charttest"
	"github.com/onesided/rma/bench/internal/golden"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs/sim"
)

// scriptedPlots are figures of part A with curves that are given.
func scriptedPlots(t *testing.T, values map[string][2][]float64) []*plot {
	t.Helper()
	var plots []*plot
	for _, f := range figures() {
		given, ok := values[f.id()]
		if !ok {
			continue
		}
		f.xs = []int{4, 1024, 1 << 20}
		turn := 0
		f.measure = func(context.Context, *figure, *curve, *paperOptions) ([]float64, error) {
			turn++
			return given[turn-1], nil
		}
		p, err := f.reproduce(t.Context(), &paperOptions{})
		require.NoError(t, err)
		plots = append(plots, p)
	}
	require.Len(t, plots, len(values))
	return plots
}

func usualPlots(t *testing.T) []*plot {
	return scriptedPlots(t, map[string][2][]float64{
		"A7a":  {{10, 500, 960}, {10, 600, 1600}},
		"A7b":  {{10, 420, 873.25}, {11, 536, 918}},
		"A8a":  {{25, 29.2, 4384}, {24.125, 26.5, 4400}},
		"A10a": {{12.0681, 13.1261, 29.0884}, {5.1899, 7.328, 29.0884}},
	})
}

func TestPaperAsText(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writePaper(&b, usualPlots(t), true))
	golden.Check(t, "testdata/paper.golden", b.String())
}

func TestPaperAsJSON(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writePaperJSON(&b, usualPlots(t), false))
	golden.Check(t, "testdata/paper.json.golden", b.String())
	for line := range strings.Lines(b.String()) {
		var p plot
		require.NoError(t, json.Unmarshal([]byte(line), &p))
		assert.Len(t, p.Curves, 2)
		assert.Len(t, p.Curves[1].Values, len(p.X))
	}
}

func TestClaimsAreJudgedByTheirKind(t *testing.T) {
	for _, test := range []struct {
		name   string
		claim  claim
		ours   float64
		within bool
		reason bool
	}{
		{"as much", claim{theirs: 40}, 40, true, false},
		{"a fifth less", claim{theirs: 40}, 32.01, true, false},
		{"less than that", claim{theirs: 40}, 31.9, false, false},
		{"less than that, whatever reason there is for more", claim{theirs: 40, beyond: "so"}, 31.9, false, false},
		{"a fifth more", claim{theirs: 40, beyond: "so"}, 47.9, true, false},
		{"more than that", claim{theirs: 40}, 48.1, false, false},
		{"more than that, for a reason", claim{theirs: 40, beyond: "so"}, 60, true, true},
		{"a loss that is less", claim{theirs: 40, kind: loss}, 31.9, false, false},
		{"a loss that is less, for a reason", claim{theirs: 40, kind: loss, beyond: "so"}, 31.9, true, true},
		{"a loss that is more, whatever reason there is for less", claim{theirs: 40, kind: loss, beyond: "so"}, 48.1, false, false},
		{"no more", claim{theirs: 5, kind: noMore}, 5, true, false},
		{"more", claim{theirs: 5, kind: noMore}, 5.1, false, false},
		{"less", claim{theirs: 5, kind: less}, 4.9, true, false},
		{"not less", claim{theirs: 5, kind: less}, 5, false, false},
		{"told without a word of the paper", claim{kind: untold}, 7, true, false},
		{"not behind", claim{kind: noLess}, 0, true, false},
		{"behind by what is not printed", claim{kind: noLess}, -0.002, true, false},
		{"behind", claim{kind: noLess}, -0.1, false, false},
		{"the same", claim{kind: asGood}, -0.9, true, false},
		{"not the same", claim{kind: asGood}, 1.1, false, false},
	} {
		v := test.claim.judge(test.ours)
		assert.Equal(t, test.within, v.Within, test.name)
		assert.Equal(t, test.reason, v.Reason != "", test.name)
	}
}

func TestDrawingsHaveAllOfAFigure(t *testing.T) {
	for _, p := range usualPlots(t) {
		m := charttest.Check(t, p.Figure, p.svg())
		assert.Len(t, m.Curves, 2)
		assert.Len(t, m.Areas, 2*len(p.X), "a mark for each value")
		assert.Equal(t, []string{p.Curves[0].Name + " (off)", p.Curves[1].Name + " (on)"}, m.Names)
		var texts []string
		for _, text := range m.Texts {
			texts = append(texts, text.What)
		}
		for _, label := range []string{"size of an operation", p.figure.yLabel, "1 KiB", "1 MiB", "profile " + p.Profile + ", in virtual time"} {
			assert.Contains(t, texts, label)
		}
		assert.Equal(t, len(p.Verdicts), strings.Count(strings.Join(texts, " "), "paper "))
	}
}

func TestAxesHaveRoundMarks(t *testing.T) {
	for high, want := range map[float64][]float64{
		1838.7: {0, 500, 1000, 1500, 2000},
		29.1:   {0, 5, 10, 15, 20, 25, 30},
		7.2:    {0, 2, 4, 6, 8},
		0.9:    {0, 0.2, 0.4, 0.6, 0.8, 1},
	} {
		p := &plot{X: []int{4, 8}, Curves: []measuredCurve{{"", "", []float64{0.5, high}}}, figure: &figure{}}
		_, y := p.placed()
		assert.InDeltaSlice(t, want, y.Ticks(), 1e-9, "up to %v", high)
	}
	p := &plot{X: []int{4, 1 << 20}, Curves: []measuredCurve{{"", "", []float64{24, 4400}}}, figure: &figure{logarithmic: true}}
	x, y := p.placed()
	assert.InEpsilonSlice(t, []float64{20, 50, 100, 200, 500, 1000, 2000, 5000}, y.Ticks(), 1e-9)
	assert.Equal(t, []float64{4, 16, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}, x.Ticks())
	assert.Equal(t, float64(chart.Left), x.At(4))
	assert.Equal(t, float64(chart.Right), x.At(1<<20))
	assert.InDelta(t, (chart.Left+chart.Right)/2, x.At(2048), 1e-9)
	for _, test := range []struct {
		xs   []int
		want []float64
	}{
		{[]int{2, 3, 4, 5, 6, 7, 8}, []float64{2, 4, 8}},
		{[]int{3906, 62500}, []float64{5000, 10000, 20000, 50000}},
		{[]int{6000, 9000}, []float64{6000, 6500, 7000, 7500, 8000, 8500, 9000}},
	} {
		p := &plot{X: test.xs, Curves: []measuredCurve{{"", "", []float64{1, 2}}}, figure: &figure{counted: true}}
		x, _ := p.placed()
		assert.InEpsilonSlice(t, test.want, x.Ticks(), 1e-9)
	}
}

// placed are the axes of the plot as a chart has them.
func (p *plot) placed() (x, y chart.Axis) {
	c := new(chart.Chart)
	c.X, c.Y = p.axes()
	c.Place(0)
	return c.X, c.Y
}

func TestEachFigureIsWholeAndOfAProfile(t *testing.T) {
	var ids []string
	for _, f := range figures() {
		assert.NotContains(t, ids, f.id())
		ids = append(ids, f.id())
		_, err := sim.ByName(f.profile)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, len(f.curves), 2, f.id())
		assert.True(t, slices.IsSorted(f.xs), f.id())
		for _, c := range f.claims {
			assert.NotEmpty(t, c.source, "%s of %s", c.name, f.id())
			assert.NotNil(t, c.of, "%s of %s", c.name, f.id())
		}
	}
}

// at is a figure at a few sizes only.
func at(t *testing.T, id string, xs ...int) *plot {
	t.Helper()
	benchtest.OnlyVirtual(t)
	for _, f := range figures() {
		if f.id() == id {
			f.xs = xs
			p, err := f.reproduce(t.Context(), &paperOptions{seed: 1, timeout: time.Minute})
			require.NoError(t, err)
			return p
		}
	}
	t.Fatalf("no figure %s", id)
	return nil
}

// What the RDMA channel saves is the paper's, but for the rate of small messages: the simulated card
// looks for a receive while it places what comes next.
func TestChannelFigures(t *testing.T) {
	for _, p := range []*plot{at(t, "D11", 4, 256), at(t, "D12", 4, 256), at(t, "D14", 4, 256), at(t, "D20", 16, 128)} {
		for _, v := range p.Verdicts {
			if v.Case != "gain_smallest" {
				assert.True(t, v.Within, "%s of %s: theirs %s, ours %v", v.Case, p.figure.id(), v.Theirs, v.Ours)
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
			assert.Greater(t, saved, 10.0, "%s at %d", p.figure.id(), p.X[i])
			assert.Less(t, saved, 26.0, "%s at %d", p.figure.id(), p.X[i])
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
				assert.True(t, v.Within, "%s of %s: theirs %s, ours %v", v.Case, p.figure.id(), v.Theirs, v.Ours)
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
	for _, p := range []*plot{fast, sent} {
		assert.InDelta(t, 0, p.improvedAt(128), 2, p.figure.id())
		assert.Greater(t, p.improvedAt(8<<10), 11.0, p.figure.id())
		assert.Less(t, p.improvedAt(8<<10), at(t, "B6a", 8<<10).improvedAt(8<<10), "%s: a put has one copy only", p.figure.id())
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

func TestSizesInSteps(t *testing.T) {
	assert.Equal(t, []int{1000, 1050, 1102, 1103, 1157}, inSteps([]int{1000, 1103, 1160}, 1.05)[:5])
}

// A figure is measured at the same places whether it is drawn or not, so that the same is told of it.
func TestDrawingChangesNoFigure(t *testing.T) {
	for _, f := range figures() {
		f.measure = func(_ context.Context, f *figure, _ *curve, _ *paperOptions) ([]float64, error) {
			return slices.Repeat([]float64{1}, len(f.xs)), nil
		}
		told, err := f.reproduce(t.Context(), &paperOptions{})
		require.NoError(t, err)
		drawn, err := f.reproduce(t.Context(), &paperOptions{svg: t.TempDir()})
		require.NoError(t, err)
		assert.Equal(t, told.X, drawn.X, f.id())
	}
}

// docs/figures.md counts what figures/figures.txt has, which is what bench paper prints, and has the papers' part of it.
func TestRecordsOfTheFiguresAgree(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(text)
	}
	printed, record := read("figures/figures.txt"), read("../docs/figures.md")
	all := parts()
	within, off, traced := 0, 0, 0
	for line := range strings.Lines(printed) {
		fields := strings.Fields(line)
		switch {
		case len(fields) < 7 || !slices.Contains(all, fields[0]):
			continue
		case slices.Contains(fields, "off"):
			off++
		case slices.Contains(fields, "within"):
			within++
		}
		if fields[0] == "trace" {
			traced++
		} else {
			assert.Contains(t, record, "\n"+line)
		}
	}
	counted := fmt.Sprintf("Of %d cases, %d of them traces of no paper, %d agree and %d are off.", within+off, traced, within, off)
	assert.Contains(t, strings.Join(strings.Fields(record), " "), counted)
}

// docs/figures.md has what .ci/figures prints, rounded: figures/virtual.txt and figures/thousands.txt; and of traces what
// figures/figures.txt has.
func TestRecordOfVirtualTime(t *testing.T) {
	text, err := os.ReadFile("../docs/figures.md")
	require.NoError(t, err)
	record := string(text)
	// measured has the value of each case and size by the command.
	measured, command := make(map[string]map[string]string), ""
	var output []string
	for _, name := range []string{"virtual", "thousands", "figures"} {
		text, err := os.ReadFile("figures/" + name + ".txt")
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			switch {
			case strings.HasPrefix(line, "$ go run ./bench "):
				command = strings.TrimSpace(strings.TrimPrefix(line, "$ go run ./bench "))
				measured[command] = make(map[string]string)
			case name == "figures" && len(fields) > 0 && fields[0] == "trace":
				command = "trace " + fields[1]
				if measured[command] == nil {
					measured[command] = make(map[string]string)
				}
				measured[command][fields[2]] = fields[len(fields)-3]
			case name != "figures" && fields[1] == "time":
				if command == "scale" {
					assert.Contains(t, strings.Join(strings.Fields(record), " "), strings.Join(fields, " "))
				}
			case name != "figures" && strings.HasPrefix(command, "scale"):
				measured[command][fields[0]+":"+fields[1]] = strings.Join([]string{fields[2], fields[4], fields[6]}, " ")
			case name == "virtual":
				measured[command][fields[0]+":"+fields[1]] = fields[2]
				if strings.Contains(command, "cardatomics") {
					output = append(output, line)
				}
			}
		}
	}
	assert.Contains(t, record, strings.Join(output, ""))

	// row is a line of the record, of the first table behind a heading that has one which begins so.
	row := func(heading, begins string) []string {
		_, behind, found := strings.Cut(record, "\n"+heading+"\n")
		require.True(t, found, heading)
		_, behind, found = strings.Cut(behind, "\n"+begins)
		require.True(t, found, "%s has no line that begins with %q", heading, begins)
		line, _, _ := strings.Cut(behind, "\n")
		return strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" |%", r) })
	}
	// agree compares what is recorded, to its last digit, with values of cases of commands.
	agree := func(recorded []string, commands, cases []string) {
		var values []string
		for _, command := range commands {
			for _, name := range cases {
				require.Contains(t, measured[command], name, command)
				value, err := strconv.ParseFloat(measured[command][name], 64)
				require.NoError(t, err)
				if strings.HasPrefix(name, "put_bw") {
					value /= 1000
				}
				_, digits, _ := strings.Cut(recorded[min(len(values), len(recorded)-1)], ".")
				values = append(values, strconv.FormatFloat(value, 'f', len(digits), 64))
			}
		}
		assert.Equal(t, values, recorded, commands)
	}
	const cards, off = "## RDMA cards", "### On and off"
	sizes := []string{"put_flush_lat:2048", "put_flush_lat:8192", "put_flush_lat:65536", "get_flush_lat:8192", "get_flush_lat:65536"}
	const moves = " put_flush_lat:2048,8192,65536 get_flush_lat:8192,65536"
	for way, begins := range map[string]string{"copy": "", "copy-pipeline": "", "superpipeline": "", "register": "", "auto": ", these buffers being used again"} {
		agree(row(cards, "| `transfer="+way+"`"+begins+" |"), []string{"-device sim:graphene-ddr -set registered=off -set transfer=" + way + moves}, sizes)
	}
	agree(row(cards, "| `registered=on` |"), []string{"-device sim:graphene-ddr -set registered=on" + moves}, sizes)

	const long = "-device sim:graphene-ddr acc_flush_lat:65536,1048576 put_flush_lat:65536,1048576"
	agree(row(off, "| put, for comparison |"), []string{long}, []string{"put_flush_lat:65536", "put_flush_lat:1048576"})
	agree(row(off, "| accumulate |"), []string{long}, []string{"acc_flush_lat:65536", "acc_flush_lat:1048576"})
	agree(row(off, "| accumulate, blocks of one length |"), []string{"-device sim:graphene-ddr -set transfer=copy acc_flush_lat:65536,1048576"}, []string{"acc_flush_lat:65536", "acc_flush_lat:1048576"})
	for rings, said := range map[string]string{"off": "send and receive", "on": "rings"} {
		var commands []string
		for _, card := range []string{"infinihost-2003", "connectx-ddr-2009", "ndr-2024"} {
			commands = append(commands, "-device sim:"+card+" -set rings="+rings+" fop_lat fence_put_lat:8")
		}
		agree(row(off, "| fetch-and-op, "+said+" |"), commands, []string{"fop_lat:8"})
		agree(row(off, "| put and fence, "+said+" |"), commands, []string{"fence_put_lat:8"})
	}
	for name, cases := range measured {
		if trace, ok := strings.CutPrefix(name, "trace "); ok {
			want := []string{cases["time_copy"], cases["time_superpipeline"], cases["time_register"], cases["time_cache"], cases["time_auto"], cases["auto_of_best"]}
			got := row("### Buffers that are used again", "| "+trace+" |")
			for i := range got {
				got[i] = strings.TrimSuffix(got[i], ".0")
				want[i] = strings.TrimSuffix(want[i], ".0")
			}
			assert.Equal(t, want, got, name)
		}
	}
	for name, values := range measured["scale"] {
		workload, ranks, _ := strings.Cut(name, ":")
		fields := strings.Fields(values)
		assert.Regexp(t, "(?m)^"+workload+" +"+ranks+" +"+strings.Join(fields, " +")+" ", record)
		if few, ok := measured["scale -ranks 4,16,64"][name]; ok {
			assert.Equal(t, few, values, name)
		}
	}
	prose := strings.Join(strings.Fields(record), " ")
	take := regexp.MustCompile(`inline=off put_flush_lat:8. takes (\S+) us where it takes (\S+) with it`).FindStringSubmatch(prose)
	require.NotNil(t, take)
	agree(take[1:], []string{"-device sim:ndr-2024 -set inline=off put_flush_lat:8", "-device sim:ndr-2024 -set inline=on put_flush_lat:8"}, []string{"put_flush_lat:8"})
	rails := []string{"-device sim:ndr-2024 -rails 2 -set striping=on put_flush_lat:8,1048576 put_bw:65536", "-device sim:ndr-2024 -rails 2 -set striping=off put_flush_lat:8,1048576 put_bw:65536"}
	take = regexp.MustCompile(`a put of 1 MiB and its flush take (\S+) instead of (\S+) us, puts of 64 KiB come to (\S+) instead of (\S+) GB/s`).FindStringSubmatch(prose)
	require.NotNil(t, take)
	agree(take[1:3], rails, []string{"put_flush_lat:1048576"})
	agree(take[3:], rails, []string{"put_bw:65536"})
}

func TestTheSameSeedGivesTheSameFigure(t *testing.T) {
	for _, id := range benchtest.SomeOf("A8a", "E5") {
		xs := map[string][]int{"A8a": {8, 2048}, "E5": {1 << 20, 8 << 20}}[id]
		assert.Equal(t, at(t, id, xs...).Curves, at(t, id, xs...).Curves)
	}
}

func TestWhatIsOffIsAnError(t *testing.T) {
	plots := usualPlots(t)
	assert.NoError(t, offAmong(plots[:1]))
	err := offAmong(plots)
	assert.ErrorIs(t, err, errOff)
	assert.EqualError(t, err, "bench: 4 of 12 cases off")

	told := &plot{Verdicts: []paperVerdict{(&claim{name: "time", kind: untold}).judge(7)}}
	assert.Equal(t, "-", told.Verdicts[0].word())
	assert.EqualError(t, offAmong(append(plots, told)), "bench: 4 of 12 cases off", "what no paper tells is none")
}

func TestPaperThatEndsEarlyHasTheFiguresBefore(t *testing.T) {
	o := &paperOptions{figures: figures()[:3]}
	for i, f := range o.figures {
		f.measure = func(context.Context, *figure, *curve, *paperOptions) ([]float64, error) {
			if i == 2 {
				return nil, context.Canceled
			}
			return slices.Repeat([]float64{1}, len(f.xs)), nil
		}
	}
	plots, err := o.measure(t.Context(), func(string) {})
	assert.ErrorIs(t, err, context.Canceled)
	assert.Len(t, plots, 2)
}

package timeline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/internal/timeline"
)

// read is the part of a file that a viewer reads.
type read struct {
	DisplayTimeUnit string
	OtherData       map[string]string
	TraceEvents     []struct {
		Ph, Name, S string
		Pid, Tid    int
		Ts, Dur     float64
		Args        map[string]any
	}
}

func parse(t *testing.T, text []byte) (r read) {
	t.Helper()
	require.NoError(t, json.Unmarshal(text, &r), "%s", text)
	require.Equal(t, "ns", r.DisplayTimeUnit)
	return r
}

func parseFile(t *testing.T, path string) read {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return parse(t, text)
}

func TestTextIsEscapedAndTimesAreExact(t *testing.T) {
	odd := "a \"b\" \\ <c>&\x00\xff\n\u2028 é"
	var out bytes.Buffer
	w := timeline.NewWriter(&out)
	w.Process(3, odd)
	w.Span(3, 1, 3*time.Hour+7, 3*time.Hour+1008)
	w.Name("plain ", odd)
	w.End()
	w.Mark(3, 1, -1500, timeline.AcrossProcess)
	w.Numbered(-7, odd)
	w.Argument("n", -5)
	w.Identity("id", 1<<63)
	w.End()
	require.NoError(t, w.Close())
	require.Contains(t, out.String(), `"ts":10800000000.007,"dur":1.0011,`)
	require.Contains(t, out.String(), `"ts":-1.500,`)
	require.Contains(t, out.String(), `"args":{"n":-5,"id":9223372036854775808}`)
	events := parse(t, out.Bytes()).TraceEvents
	shown := "a \"b\" \\ <c>&\x00\ufffd\n\u2028 é"
	require.Equal(t, shown, events[0].Args["name"])
	require.Equal(t, "plain "+shown, events[2].Name)
	require.Equal(t, shown+"-7", events[3].Name)
	require.Equal(t, "p", events[3].S)
}

// A viewer that multiplies by 1000 and rounds, or truncates, gets each nanosecond.
func TestTimesSurviveFloats(t *testing.T) {
	var out bytes.Buffer
	w := timeline.NewWriter(&out)
	var times []time.Duration
	for _, from := range []time.Duration{0, time.Second, time.Hour + 682_639, 30 * time.Hour} {
		for ns := range time.Duration(5000) {
			times = append(times, from+ns)
			w.Span(0, 0, from+ns, 2*(from+ns))
			w.End()
		}
	}
	require.NoError(t, w.Close())
	for i, e := range parse(t, out.Bytes()).TraceEvents {
		for _, read := range []float64{e.Ts, e.Dur} {
			require.Equal(t, times[i], time.Duration(read*1000))
			require.Equal(t, times[i], time.Duration(math.Round(read*1000)))
		}
	}
}

func TestErrorsAreToldByClose(t *testing.T) {
	full := errors.New("full")
	reader, writer := io.Pipe()
	require.NoError(t, reader.CloseWithError(full))
	w := timeline.NewWriter(writer)
	for range 10_000 {
		w.Span(0, 0, 0, 1)
		w.End()
	}
	require.ErrorIs(t, w.Close(), full)
	require.ErrorIs(t, w.Close(), full)

	var out bytes.Buffer
	w = timeline.NewWriter(&out)
	require.NoError(t, w.Close())
	require.Empty(t, parse(t, out.Bytes()).TraceEvents)
	w.Process(0, "late")
	require.ErrorContains(t, w.Close(), "the file is closed")
}

func TestEventsAllocateNothing(t *testing.T) {
	w := timeline.NewWriter(io.Discard)
	at := time.Duration(0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		at += 1500
		w.Span(1000, 2, at, at+1000)
		w.Numbered(4000, "write", " response", " to ")
		w.Argument("bytes", 1<<40)
		w.End()
		w.Mark(1000, 2, at, timeline.OnLane)
		w.Name("placed ", "write")
		w.End()
	}))
}

// Two spans of a row are disjoint or nested. No earlier row has room for a span.
func TestRows(t *testing.T) {
	type span struct{ from, until time.Duration }
	fits := func(a, b span) bool {
		return a.until <= b.from || b.until <= a.from || a.from <= b.from && b.until <= a.until || b.from <= a.from && a.until <= b.until
	}
	for seed := range testsize.Samples(t, 200) {
		random := rand.New(rand.NewPCG(seed, 0))
		spans := make([]span, 40)
		for i := range spans {
			from := time.Duration(random.IntN(60))
			spans[i] = span{from, from + time.Duration(random.IntN(20))}
		}
		slices.SortFunc(spans, func(a, b span) int {
			if a.from != b.from {
				return int(a.from - b.from)
			}
			return int(b.until - a.until)
		})
		var rows timeline.Rows
		var placed [][]span
		for _, s := range spans {
			row := rows.Place(s.from, s.until)
			for len(placed) <= row {
				placed = append(placed, nil)
			}
			for before := range row {
				require.True(t, slices.ContainsFunc(placed[before], func(other span) bool { return !fits(s, other) }), "seed %d: %v has place in row %d: %v", seed, s, before, placed[before])
			}
			for _, other := range placed[row] {
				require.True(t, fits(s, other), "seed %d: %v and %v in row %d", seed, s, other, row)
			}
			placed[row] = append(placed[row], s)
		}
		require.Equal(t, len(placed), rows.Len())
	}
}

func TestProcessesAddToOneFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.json")
	began := time.Now()
	const ranks, spans = 8, 500
	var origins [ranks]time.Time
	errs := make([]error, ranks)
	var all sync.WaitGroup
	for rank := range ranks {
		all.Go(func() {
			errs[rank] = timeline.Append(path, "job", began, func(w *timeline.Writer, origin time.Time) {
				origins[rank] = origin
				w.Process(rank, fmt.Sprint("rank ", rank))
				for i := range spans {
					w.Span(rank, 0, time.Duration(i), time.Duration(i+1))
					w.Name("span")
					w.End()
				}
			})
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	got := parseFile(t, path)
	require.Equal(t, "job", got.OtherData["job"])
	count := make(map[int]int)
	for _, e := range got.TraceEvents {
		if e.Name == "span" {
			count[e.Pid]++
		}
	}
	for rank := range ranks {
		require.Equal(t, spans, count[rank])
		require.True(t, origins[rank].Equal(origins[0]))
		require.True(t, origins[rank].Equal(began.Round(0)))
	}
}

func TestAFileIsMadeAnewForAnotherJobAndNothingElseIsTouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.json")
	one := func(w *timeline.Writer, _ time.Time) { w.Process(0, "rank 0") }
	require.NoError(t, timeline.Append(path, "first", time.Now(), one))
	require.NoError(t, timeline.Append(path, "first", time.Now(), nil))
	require.Len(t, parseFile(t, path).TraceEvents, 2)
	require.NoError(t, timeline.Append(path, "second", time.Now(), nil))
	require.Empty(t, parseFile(t, path).TraceEvents)
	require.Equal(t, "second", parseFile(t, path).OtherData["job"])
	require.NoError(t, timeline.Append(path, "second", time.Now(), one))
	require.Len(t, parseFile(t, path).TraceEvents, 2)

	for _, text := range []string{"a letter\n", `{"displayTimeUnit":"ns","traceEvents":[` + "\n]}\n", `{"displayTimeUnit":"ns","otherData":{"job":3},"traceEvents":[` + "\n]}\n"} {
		other := filepath.Join(t.TempDir(), "other")
		require.NoError(t, os.WriteFile(other, []byte(text), 0o600))
		require.ErrorIs(t, timeline.Append(other, "second", time.Now(), one), timeline.ErrForeign)
		kept, err := os.ReadFile(other)
		require.NoError(t, err)
		require.Equal(t, text, string(kept))
	}
	require.ErrorIs(t, timeline.Append(os.DevNull, "second", time.Now(), one), timeline.ErrForeign)
	require.ErrorContains(t, timeline.Append(filepath.Join(path, "x"), "second", time.Now(), one), "not a directory")
}

// A process that is killed while it writes leaves a part of an event, or of the end of the file.
func TestAFileThatWasCutAnywhereIsContinued(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.json")
	write := func(rank int) func(w *timeline.Writer, _ time.Time) {
		return func(w *timeline.Writer, _ time.Time) {
			for i := range 3 {
				w.Span(rank, 0, time.Duration(i), time.Duration(i+1))
				w.Name("span, ", "[]{}")
				w.End()
			}
		}
	}
	require.NoError(t, timeline.Append(path, "job", time.Now(), write(0)))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	first := bytes.IndexByte(text, '\n')
	for n := first; n <= len(text); n++ {
		require.NoError(t, os.WriteFile(path, text[:n], 0o600))
		require.NoError(t, timeline.Append(path, "job", time.Now(), write(1)))
		got := parseFile(t, path)
		kept, whole := 0, bytes.Count(text[first:n], []byte(",\n"))
		for _, e := range got.TraceEvents {
			if e.Pid == 0 {
				kept++
			}
		}
		require.GreaterOrEqual(t, kept, whole, "cut at %d", n)
		require.Equal(t, 3, len(got.TraceEvents)-kept)
	}
}

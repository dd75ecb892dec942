package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// run1 is the JSON of a run. One test passes after a parallel one, one is skipped, one fails, and a package does not
// build.
const run1 = `{"Time":"2026-01-01T00:00:00Z","Action":"start","Package":"m/a"}
{"Time":"2026-01-01T00:00:01Z","Action":"run","Package":"m/a","Test":"TestSlow"}
{"Time":"2026-01-01T00:00:02Z","Action":"pause","Package":"m/a","Test":"TestSlow"}
{"Time":"2026-01-01T00:00:02Z","Action":"run","Package":"m/a","Test":"TestSkipped"}
{"Time":"2026-01-01T00:00:02Z","Action":"run","Package":"m/a","Test":"TestSkipped/one"}
{"Time":"2026-01-01T00:00:02Z","Action":"output","Package":"m/a","Test":"TestSkipped/one","Output":"=== RUN   TestSkipped/one\n"}
{"Time":"2026-01-01T00:00:02Z","Action":"output","Package":"m/a","Test":"TestSkipped/one","Output":"    a_test.go:7: skipped: there is: no card\n"}
{"Time":"2026-01-01T00:00:02Z","Action":"output","Package":"m/a","Test":"TestSkipped/one","Output":"        a.go:9: but a slot\n"}
{"Time":"2026-01-01T00:00:02Z","Action":"output","Package":"m/a","Test":"TestSkipped/one","Output":"--- SKIP: TestSkipped/one (0.00s)\n"}
{"Time":"2026-01-01T00:00:02Z","Action":"skip","Package":"m/a","Test":"TestSkipped/one","Elapsed":0}
{"Time":"2026-01-01T00:00:03Z","Action":"pass","Package":"m/a","Test":"TestSkipped","Elapsed":0}
{"Time":"2026-01-01T00:00:10Z","Action":"cont","Package":"m/a","Test":"TestSlow"}
{"Time":"2026-01-01T00:00:10Z","Action":"attr","Package":"m/a","Test":"TestSlow","Key":"limit","Value":"awaited"}
{"Time":"2026-01-01T00:00:11Z","Action":"attr","Package":"m/a","Test":"TestSlow","Key":"limit","Value":"acquired"}
{"Time":"2026-01-01T00:00:11Z","Action":"attr","Package":"m/a","Test":"TestSlow","Key":"other","Value":"acquired"}
{"Time":"2026-01-01T00:00:12Z","Action":"output","Package":"m/a","Test":"TestSlow","Output":"what a passing test prints\n"}
{"Time":"2026-01-01T00:00:12Z","Action":"pass","Package":"m/a","Test":"TestSlow","Elapsed":3}
{"Time":"2026-01-01T00:00:12Z","Action":"output","Package":"m/a","Output":"ok then, TestMain says\n"}
{"Time":"2026-01-01T00:00:12Z","Action":"output","Package":"m/a","Output":"ok  \tm/ab\tis not this package\n"}
{"Time":"2026-01-01T00:00:12Z","Action":"output","Package":"m/a","Output":"PASS\n"}
{"Time":"2026-01-01T00:00:12Z","Action":"output","Package":"m/a","Output":"ok  \tm/a\t12.000s\n"}
{"Time":"2026-01-01T00:00:12Z","Action":"pass","Package":"m/a","Elapsed":12}
go: a line that is no event
{"ImportPath":"m/b [m/b.test]","Action":"build-output","Output":"b/b.go:3: undefined: x\n"}
{"ImportPath":"m/b [m/b.test]","Action":"build-fail"}
{"Time":"2026-01-01T00:00:13Z","Action":"run","Package":"m/c","Test":"TestBad"}
{"Time":"2026-01-01T00:00:13Z","Action":"output","Package":"m/c","Test":"TestBad","Output":"    c_test.go:9: the reason\n"}
{"Time":"2026-01-01T00:00:14Z","Action":"fail","Package":"m/c","Test":"TestBad","Elapsed":1}
{"Time":"2026-01-01T00:00:14Z","Action":"output","Package":"m/c","Output":"FAIL\n"}
{"Time":"2026-01-01T00:00:14Z","Action":"output","Package":"m/c","Output":"FAIL\tm/c\t1.000s\n"}
{"Time":"2026-01-01T00:00:14Z","Action":"fail","Package":"m/c","Elapsed":1}
`

func readAll(t *testing.T, text string) (*reader, string) {
	t.Helper()
	var out strings.Builder
	r := newReader(&out)
	require.NoError(t, r.read(strings.NewReader(text)))
	return r, out.String()
}

func TestRead(t *testing.T) {
	r, shown := readAll(t, run1)
	require.True(t, r.failed)
	require.Equal(t, "ok  \tm/a\t12.000s\ngo: a line that is no event\nb/b.go:3: undefined: x\n    c_test.go:9: the reason\nFAIL\nFAIL\tm/c\t1.000s\n", shown)
	require.Equal(t, []outcome{
		{Package: "m/a", Test: "TestSkipped/one", Action: "skip", Processor: -1, Others: -1, Reason: "there is: no card a.go:9: but a slot"},
		{Package: "m/a", Test: "TestSkipped", Action: "pass", Seconds: 1, Processor: -1, Others: -1},
		{Package: "m/a", Test: "TestSlow", Action: "pass", Seconds: 2, Processor: -1, Others: -1},
		{Package: "m/a", Action: "pass", Seconds: 12},
		{Package: "m/c", Test: "TestBad", Action: "fail", Seconds: 1, Processor: -1, Others: -1},
		{Package: "m/c", Action: "fail", Seconds: 1},
	}, r.outcomes(nil))

	passing, _ := readAll(t, run1[:strings.Index(run1, "go: a line")])
	require.False(t, passing.failed)
}

func TestSummaries(t *testing.T) {
	for _, line := range []string{
		"ok  \tm/a\t12.000s\n", "ok  \tm/a\t(cached)\tcoverage: 0.0% of statements\n", "FAIL\tm/a\t1.000s\n", "FAIL\tm/a [build failed]\n",
		"?   \tm/a\t[no test files]\n", "ok  \tm/a",
	} {
		require.True(t, isSummary(line, "m/a"), line)
	}
	for _, line := range []string{"", "\n", "FAIL\n", "PASS\n", "ok m/a\n", "okay\tm/a\t1s\n", "ok  \tm/ab\t1s\n", "ok  \tm\t1s\n"} {
		require.False(t, isSummary(line, "m/a"), line)
	}
}

// A line may have any length, and the last one may lack its end.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 65<<20)
	_, shown := readAll(t, long+"\nthe next line")
	require.True(t, long+"\nthe next line\n" == shown)
}

// A test has the processor time of all its spans, and not that of the time between them.
func TestProcessorTime(t *testing.T) {
	r, _ := readAll(t, run1)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	samples := []sample{{begin, 0, 0}, {begin.Add(4 * time.Second), 4 * time.Second, 0}, {begin.Add(12 * time.Second), 4 * time.Second, 8 * time.Second}}
	of := make(map[string]outcome)
	for _, o := range r.outcomes(map[string][]sample{"m/a": samples}) {
		of[o.Test] = o
	}
	require.Equal(t, 1.0, of["TestSlow"].Processor)
	require.Equal(t, 1.0, of["TestSlow"].Others)
	require.Equal(t, 1.0, of["TestSkipped"].Processor)
	require.Equal(t, -1.0, of["TestBad"].Processor)
}

func TestTables(t *testing.T) {
	outcomes := []outcome{
		{Package: "github.com/onesided/rma/a", Test: "TestX", Action: "pass", Seconds: 2, Processor: 0.1, Others: 0.2},
		{Package: "github.com/onesided/rma/a", Test: "TestY", Action: "pass", Seconds: 1, Processor: 0.1, Others: 0.6},
		{Package: "github.com/onesided/rma/a", Test: "TestZ", Action: "pass", Seconds: 3, Processor: 3},
		{Package: "github.com/onesided/rma/a", Test: "TestZ/one", Action: "skip", Reason: "no root"},
		{Package: "github.com/onesided/rma/a", Test: "TestZ/two", Action: "skip", Reason: "no root"},
		{Package: "github.com/onesided/rma", Test: "TestU", Action: "skip", Processor: -1, Others: -1},
		{Package: script, Test: "builds for m/n", Action: "skip", Reason: "no root"},
		{Package: "github.com/onesided/rma/a", Action: "pass", Seconds: 7},
	}
	path := filepath.Join(t.TempDir(), "record")
	require.NoError(t, save(path, outcomes[:3]))
	require.NoError(t, save(path, outcomes[3:]))
	loaded, err := load(path)
	require.NoError(t, err)
	require.Equal(t, outcomes, loaded)
	var out strings.Builder
	require.NoError(t, tables(&out, loaded, 3))
	require.Equal(t, `
skipped tests, by reason: 2 reasons
  no reason was given
       TestU
  no root
      a TestZ, 2 subtests
      script: builds for m/n

the 3 slowest of 4 tests: 6 of 6 s
  seconds  processor s  in processes it started                       
     3.00         3.00                     0.00               computes  a TestZ
     2.00         0.10                     0.20                  waits  a TestX
     1.00         0.10                     0.60  its processes compute  a TestY
`, out.String())
}

func TestParseSamples(t *testing.T) {
	dir, samples := parseSamples("/some where\n1 2 3\n4 5 6\n7 8")
	require.Equal(t, "/some where", dir)
	require.Equal(t, []sample{{time.Unix(0, 1), 2, 3}, {time.Unix(0, 4), 5, 6}}, samples)
	dir, samples = parseSamples("")
	require.Empty(t, dir)
	require.Empty(t, samples)
}

// The processor times of this process can be read.
func TestProcessorTimeOfThisProcess(t *testing.T) {
	own, others, ok := processorTime(os.Getpid())
	if !ok {
		t.Skip("skipped: processor times of other processes need Linux")
	}
	require.GreaterOrEqual(t, own, time.Duration(0))
	require.GreaterOrEqual(t, others, time.Duration(0))
	_, _, ok = processorTime(0)
	require.False(t, ok)
}

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var small = project{
	packages: []string{"m/a", "m/b", "m/c"},
	tested:   []string{"m/a", "m/b"},
	targets:  []target{{"m/a", "FuzzX"}, {"m/b", "FuzzY"}},
}

// commands returns the command lines of a round of all parts, in their order.
func commands(p project, seed uint64, r round) (lines []string) {
	for _, part := range plan(p, seed, "REV") {
		for _, u := range part.round(r) {
			lines = append(lines, part.name+": "+u.replay())
		}
	}
	return lines
}

// The same seed gives the same commands in the same order. Another seed or another round gives others.
func TestPlanIsOfItsSeed(t *testing.T) {
	first, second := round{}, round{number: 1}
	require.Equal(t, commands(small, 7, first), commands(small, 7, first))
	require.NotEqual(t, commands(small, 7, first), commands(small, 8, first))
	require.NotEqual(t, commands(small, 7, first), commands(small, 7, second))
	lines := strings.Join(commands(small, 7, second), "\n")
	require.Contains(t, lines, "random programs: RMA_TEST_SIZE=20 RMA_TEST_SEED=1000010 go test -v -count=1 -timeout 60m ./internal/oracle")
	require.Contains(t, lines, "fuzzing: go test -vet=off -run '^$' -fuzz '^FuzzY$' -fuzztime 10s -fuzzminimizetime 1s m/b")
	for _, name := range small.packages {
		require.Contains(t, lines, "race detector: RMA_TEST_SEED=1000010 go test -v -count=1 -timeout 60m -race "+name)
	}
	require.Contains(t, lines, "race detector: RMA_TEST_SEED=1000010 go test -v -count=1 -timeout 60m -race -tags ibverbs ./verbs/ibv/... ./internal/nulldev")
}

// On a machine without a C compiler, or without libibverbs, what needs it is skipped, and says why.
func TestMachineWithoutC(t *testing.T) {
	raced := func(p project) (runs int, reasons []string) {
		for _, part := range plan(p, 7, "REV") {
			if part.name != "race detector" {
				continue
			}
			for _, u := range part.round(round{}) {
				if u.lacks == "" {
					runs++
					continue
				}
				v, output := execute(t.Context(), u)
				require.Equal(t, skipped, v)
				reasons = append(reasons, output)
			}
		}
		return runs, reasons
	}
	lacking := func(variable, value string) (p project) {
		t.Setenv(variable, value)
		p.inspectC(t.Context())
		return p
	}
	runs, reasons := raced(lacking("CC", "/no/such/compiler"))
	require.Zero(t, runs)
	require.Equal(t, []string{"the race detector needs cgo: " + noCgo}, reasons)
	require.Equal(t, project{noCgo: noCgo, noVerbs: noCgo}, lacking("CGO_ENABLED", "0"))
	p := small
	p.noVerbs = noVerbs
	runs, reasons = raced(p)
	require.Equal(t, len(small.packages), runs)
	require.Equal(t, []string{noVerbs}, reasons)
}

// Where the time is short the first round is short, and the gate for speed has most of its part's time.
func TestPlanIsOfItsTime(t *testing.T) {
	lines := strings.Join(commands(small, 7, round{0, 10 * time.Minute}), "\n")
	require.Contains(t, lines, "random programs: RMA_TEST_SIZE=1 RMA_TEST_SEED=7 go test")
	require.Contains(t, lines, "speed against REV: go run ./bench gate -against REV -minutes 7.0 -some 10 -seed 7")
	require.Contains(t, strings.Join(commands(small, 7, round{2, 10 * time.Minute}), "\n"), "random programs: RMA_TEST_SIZE=4 ")
	require.Contains(t, strings.Join(commands(small, 7, round{100, 10 * time.Minute}), "\n"), "random programs: RMA_TEST_SIZE=20 ")
}

// Where the time is limited each kind of machine tests some packages, and all of them in turns. Otherwise it tests all.
func TestMachinesOfATime(t *testing.T) {
	p := project{tested: []string{"m/a", "m/b", "m/c", "m/d", "m/e"}}
	// tested returns the packages that each kind tests in a round.
	tested := func(r round) map[string]string {
		of := make(map[string]string)
		for _, u := range p.machines(7, r) {
			require.Equal(t, ".ci/machine", u.command[0])
			of[u.command[1]] = strings.Join(u.command[2:], " ")
		}
		require.Len(t, of, 9)
		return of
	}
	for kind, packages := range tested(round{}) {
		require.Empty(t, packages, kind)
	}
	for kind, packages := range tested(round{0, time.Hour}) {
		require.Empty(t, packages, kind)
	}
	kinds, all := make(map[string]int), make(map[string]map[string]bool)
	for number := range p.tested {
		for kind, packages := range tested(round{number, 2 * time.Minute}) {
			name, ok := strings.CutPrefix(packages, "-v -count=1 -timeout 60m ")
			require.True(t, ok, packages)
			require.Contains(t, p.tested, name)
			if number == 0 {
				kinds[name]++
			}
			if all[kind] == nil {
				all[kind] = make(map[string]bool)
			}
			all[kind][name] = true
		}
	}
	require.Len(t, kinds, len(p.tested), "the kinds of a round test all packages")
	for kind, names := range all {
		require.Len(t, names, len(p.tested), kind)
	}
	for kind, packages := range tested(round{0, 4 * time.Minute}) {
		require.Len(t, strings.Fields(packages), 4+2, kind)
	}
	require.NotEqual(t, p.machines(7, round{0, time.Minute}), p.machines(8, round{0, time.Minute}))
}

// The module's own fuzz tests and packages are found.
func TestInspect(t *testing.T) {
	p, err := inspect(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"github.com/onesided/rma/internal/tools/longrun"}, p.packages)
	require.Equal(t, p.packages, p.tested)
	require.Empty(t, p.targets)
	found := fuzzTest.FindAllStringSubmatch("func FuzzX(f *testing.F) {\n// func FuzzY(\nfunc FuzzZ(f *testing.F) {\n", -1)
	require.Len(t, found, 2)
	require.Equal(t, "FuzzZ", found[1][1])
}

// A clock advances when units run.
type clock struct{ now time.Time }

// fake returns a part of a fake project, with a unit for each name. The runner decides by the name how the unit ends.
func fake(name string, weight float64, repeats bool, units ...string) part {
	return part{name: name, weight: weight, repeats: repeats, round: func(round) (all []unit) {
		for _, u := range units {
			all = append(all, unit{name: u, command: []string{"do", u}, shown: u == "table"})
		}
		return all
	}}
}

func (c *clock) runner(out *strings.Builder) runner {
	return runner{out: out, now: func() time.Time { return c.now }, execute: func(ctx context.Context, u unit) (verdict, string) {
		c.now = c.now.Add(time.Second)
		return map[string]verdict{"good": passed, "table": passed, "bad": failed, "absent": skipped}[u.name], "what " + u.name + " printed\n"
	}}
}

func TestEachPartOnce(t *testing.T) {
	var out strings.Builder
	r := (&clock{}).runner(&out)
	require.True(t, r.run(t.Context(), []part{
		fake("one", 1, true, "good", "bad", "good"), fake("two", 1, false, "absent"), fake("three", 1, true, "good", "table"),
	}, 0))
	require.Equal(t, `
== one
ok	good	1.0s
FAIL	bad	1.0s
what bad printed
repeat it by: do bad
ok	good	1.0s

== two
skipped	absent	1.0s
what absent printed

== three
ok	good	1.0s
ok	table	1.0s
what table printed

FAIL    one                                 2 passed, 1 failed, 0 cut, 0 not begun, 0 skipped, 3s
skipped two                                 0 passed, 0 failed, 0 cut, 0 not begun, 1 skipped, 1s: what absent printed
ok      three                               2 passed, 0 failed, 0 cut, 0 not begun, 0 skipped, 2s
`, out.String())
}

// timed is a runner in virtual time. Its units take 1.1 s, and the slow ones all of the part's time.
func timed(out *strings.Builder) runner {
	return runner{out: out, now: time.Now, execute: func(ctx context.Context, u unit) (verdict, string) {
		if u.name == "slow" {
			<-ctx.Done()
			return cut, ""
		}
		// No unit ends when the part's time does.
		time.Sleep(1100 * time.Millisecond) // computes, in virtual time
		return map[string]verdict{"good": passed, "absent": skipped}[u.name], ""
	}}
}

// A part that repeats does so until its time is over. A unit that has not ended by then is cut, which is no failure.
// A part is "ok" only if each unit of its first round has ended.
func TestSharedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		r := timed(&out)
		require.False(t, r.run(t.Context(), []part{
			fake("slow", 1, true, "slow"),
			fake("quick", 3, true, "good"),
			fake("stuck", 1, true, "good", "slow", "good", "good"),
			fake("again", 1, true, "good", "good", "good"),
			fake("partly absent", 1, true, "good", "absent"),
			fake("absent", 1, true, "absent"),
			fake("once", 1, false, "good"),
		}, 90*time.Second))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		require.Equal(t, []string{
			"cut     slow                                0 passed, 0 failed, 1 cut, 0 not begun, 0 skipped, 10s",
			"ok      quick                              28 passed, 0 failed, 0 cut, 0 not begun, 0 skipped, 31s",
			"cut     stuck                               1 passed, 0 failed, 1 cut, 2 not begun, 0 skipped, 10s",
			"ok      again                               9 passed, 0 failed, 0 cut, 0 not begun, 0 skipped, 10s",
			"ok      partly absent                       5 passed, 0 failed, 0 cut, 0 not begun, 4 skipped, 10s",
			"skipped absent                              0 passed, 0 failed, 0 cut, 0 not begun, 1 skipped, 1s",
			"ok      once                                1 passed, 0 failed, 0 cut, 0 not begun, 0 skipped, 1s",
		}, lines[len(lines)-7:])
	})
}

// Nothing begins after the run was interrupted, and no part counts as tried.
func TestInterrupted(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	var out strings.Builder
	r := (&clock{}).runner(&out)
	require.False(t, r.run(ctx, []part{fake("one", 1, true, "good", "bad")}, 0))
	require.Contains(t, out.String(), "cut     one                                 0 passed, 0 failed, 0 cut, 2 not begun, 0 skipped, 0s\n")
}

func TestJudge(t *testing.T) {
	status := func(n string) error { return exec.Command("sh", "-c", "exit "+n).Run() }
	ended, end := context.WithCancel(t.Context())
	end()
	fuzz, gate := unit{passes: cutShort}, unit{cut: undecided}
	for _, c := range []struct {
		name   string
		ctx    context.Context
		u      unit
		err    error
		output string
		want   verdict
	}{
		{"passed", t.Context(), unit{}, nil, "", passed},
		{"failed", t.Context(), unit{}, status("1"), "", failed},
		{"skipped", t.Context(), unit{}, status("77"), "", skipped},
		{"not started", t.Context(), unit{}, errors.New("no such program"), "", failed},
		{"cut", ended, unit{}, status("1"), "", cut},
		{"failed before it was cut", ended, unit{}, status("1"), "=== RUN   TestX\n    --- FAIL: TestX/a (0.00s)\n=== RUN   TestY\n", failed},
		{"raced before it was cut", ended, unit{}, status("1"), "==================\nWARNING: DATA RACE\n", failed},
		{"cut in a test that tells of failures", ended, unit{}, status("1"), "    x_test.go:1: no panic: none\n", cut},
		{"fuzzing that its end cuts short", t.Context(), fuzz, status("1"), "context deadline exceeded", passed},
		{"fuzzing that finds something", t.Context(), fuzz, status("1"), "Failing input, context deadline exceeded", failed},
		{"a gate that can say nothing", t.Context(), gate, status("1"), "bench: gate: nothing can be said: 3 of 5 measured cells undecided\nexit status 1\n", cut},
		{"a gate that finds something", t.Context(), gate, status("1"), "bench: gate: slower than HEAD: x; nothing can be said: 3 of 5\n", failed},
	} {
		v, _ := judge(c.ctx, c.u, c.err, c.output)
		require.Equal(t, c.want, v, c.name)
	}
}

// Processes that a cut unit has started end.
func TestExecuteIsCut(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	began := make(chan struct{})
	go func() {
		<-began
		end()
	}()
	close(began)
	v, _ := execute(ctx, unit{command: []string{"sh", "-c", "sleep 1000 & sleep 1000"}})
	require.Equal(t, cut, v)
}

// .ci/long removes the files that it builds for its help.
func TestHelp(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skipf("skipped: .ci/long is a script for bash: %v", err)
	}
	temporary := t.TempDir()
	c := exec.Command(bash, "../../../.ci/long", "-h")
	c.Env = append(os.Environ(), "TMPDIR="+temporary)
	output, err := c.Output()
	require.NoError(t, err)
	require.Contains(t, string(output), "usage: .ci/long")
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestBadArguments(t *testing.T) {
	for want, o := range map[string]options{
		"no arguments are possible":                                         {arguments: []string{"x"}},
		"-minutes must not be negative":                                     {minutes: -1},
		"-seed must not be above":                                           {seed: 1<<62 + 1},
		`-part "nothing": no part has a name`:                               {only: "nothing"},
		"-part: error parsing regexp":                                       {only: "("},
		"-against none: git knows no such commit; name one by -against REV": {against: "none"},
	} {
		_, err := long(t.Context(), o)
		require.ErrorContains(t, err, want)
	}
}

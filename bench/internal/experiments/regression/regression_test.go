package regression

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/gate"
	"github.com/onesided/rma/internal/await"
)

func TestGateCells(t *testing.T) {
	cells := allCells()
	assert.Len(t, cells, 30)
	devices, names := make(map[string]int), make(map[string]bool)
	for _, c := range cells {
		kind, _, simulated := strings.Cut(c.device, ":")
		devices[kind]++
		assert.Equal(t, simulated, c.cell().Exact, c.cell())
		assert.False(t, names[c.cell().String()], "%v is there twice", c.cell())
		names[c.cell().String()] = true
		require.NotNil(t, cases.ByName(c.name), c.name)
		assert.NoError(t, cases.ByName(c.name).CheckSize(c.size, 0))
		if simulated {
			_, err := device.Card(c.device)
			assert.NoError(t, err)
			assert.Empty(t, cases.ByName(c.name).NotVirtual, "%v is left out in virtual time", c.cell())
		}
	}
	assert.Equal(t, map[string]int{device.Shm: 12, device.TCP: 11, "sim": 7}, devices)
}

func TestGateOptions(t *testing.T) {
	o, err := parse([]string{"-against", "HEAD", "-limit", "2.5%", "-minutes", "0.5", "-rounds", "30", "-cells", "^shm put_"}, nil)
	require.NoError(t, err)
	assert.Equal(t, gate.Plan{Limit: 0.025, Rounds: 30, Time: 30 * time.Second, Slice: slice, Alarm: 0.01, Miss: 0.05, Seed: 1}, o.plan)
	assert.Equal(t, []cell{{device.Shm, "put_flush_lat", 8, 300}, {device.Shm, "put_bw", 65536, 5}}, o.cells)

	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "bench: gate needs -against COMMIT"},
		{[]string{"-against", "HEAD", "put_flush_lat"}, "bench: put_flush_lat: gate takes flags only; -cells chooses cells"},
		{[]string{"-against", "HEAD", "-cells", "no such"}, "bench: -cells matches no cell; -h lists them"},
		{[]string{"-against", "HEAD", "-cells", "("}, "missing closing )"},
		{[]string{"-against", "HEAD", "-rounds", "0"}, "bench: -rounds 0: allowed are 1 to 200"},
		{[]string{"-against", "HEAD", "-rounds", "201"}, "bench: -rounds 201: allowed are 1 to 200"},
		{[]string{"-against", "HEAD", "-rounds", "9"}, "bench: -rounds 9: 9 rounds are too few: 23 cells need 13 before one can be told to be slower"},
		{[]string{"-against", "HEAD", "-some", "-1"}, "bench: -some -1: allowed are 1 or more, and 0 for all"},
		{[]string{"-against", "HEAD", "-minutes", "0"}, "bench: -minutes 0: more than 0"},
		{[]string{"-against", "HEAD", "-minutes", "NaN"}, "bench: -minutes NaN: more than 0"},
		{[]string{"-against", "HEAD", "-limit", "0"}, "bench: -limit 0: allowed are percents above 0, up to 1000"},
		{[]string{"-against", "HEAD", "-limit", "NaN"}, "bench: -limit NaN: allowed are percents above 0, up to 1000"},
		{[]string{"-against", "HEAD", "-limit", "much"}, "invalid syntax"},
	} {
		_, err := parse(c.args, nil)
		assert.ErrorIs(t, err, cli.ErrUsage, c.args)
		assert.ErrorContains(t, err, c.want, c.args)
	}
	_, err = parse([]string{"-against", "HEAD", "-rounds", "1", "-cells", "sim"}, nil)
	assert.NoError(t, err, "what is exact needs no rounds")

	drawn := func(some, seed string) []cell {
		o, err := parse([]string{"-against", "HEAD", "-some", some, "-seed", seed}, nil)
		require.NoError(t, err)
		return o.cells
	}
	assert.Len(t, drawn("9", "3"), 9)
	assert.Equal(t, drawn("9", "3"), drawn("9", "3"))
	assert.NotEqual(t, drawn("9", "3"), drawn("9", "4"))
	assert.Equal(t, allCells(), drawn("30", "3"))

	var usage bytes.Buffer
	_, err = parse([]string{"-h"}, &usage)
	assert.ErrorIs(t, err, flag.ErrHelp)
	for _, c := range allCells() {
		assert.Contains(t, usage.String(), c.cell().String())
	}
	assert.Contains(t, usage.String(), "(default 20)")
}

// A testTree is a git work tree whose program bench says what a test wants.
type testTree struct {
	*testing.T
	dir string
}

// benchSource is a program that measures as its line says: a case of the switch for each cell.
const benchSource = `package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	name, size, _ := strings.Cut(os.Args[len(os.Args)-1], ":")
	value, unit := 1.0, "us"
	fail := func(status int, text string) { fmt.Fprintln(os.Stderr, text); os.Exit(status) }
	_ = fail
	switch os.Args[2] + " " + name {
	%s
	}
	fmt.Printf("{\"case\":%%q,\"size\":%%s,\"value\":%%v,\"unit\":%%q}\n", name, size, value, unit)
}
`

func newTestTree(t *testing.T) *testTree {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("skipped: git is not installed")
	}
	tree := &testTree{t, filepath.Join(t.TempDir(), "work tree")}
	require.NoError(t, os.Mkdir(tree.dir, 0o755))
	tree.git("init", "--quiet")
	tree.write("go.mod", "module fake\n\ngo 1.26\n")
	return tree
}

func (t *testTree) git(args ...string) string {
	t.Helper()
	text, err := git(t.Context(), t.dir, append([]string{"-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}, args...)...)
	require.NoError(t, err)
	return text
}

func (t *testTree) write(name, text string) {
	t.Helper()
	path := filepath.Join(t.dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// measures has the program of the work tree measure what these cases of a switch say.
func (t *testTree) measures(cases string) {
	t.Helper()
	t.write("bench/main.go", strings.Replace(strings.ReplaceAll(benchSource, "%%", "%"), "%s\n\t}", cases+"\n\t}", 1))
}

func (t *testTree) commit(subject string) {
	t.Helper()
	t.git("add", "--all")
	t.git("commit", "--quiet", "-m", subject)
}

// gate runs a gate in the work tree, and holds that it leaves nothing.
func (t *testTree) gate(args ...string) (stdout string, err error) {
	t.Helper()
	var out, progress bytes.Buffer
	err = Run(t.Context(), t.dir, args, &out, &progress)
	t.holdsNothingElse()
	return out.String(), err
}

// holdsNothingElse holds that git knows no other worktree.
func (t *testTree) holdsNothingElse() {
	t.Helper()
	assert.Equal(t, 1, strings.Count(t.git("worktree", "list", "--porcelain"), "worktree "), "a worktree is left")
	assert.NoDirExists(t, filepath.Join(t.dir, ".git", "worktrees"))
}

// columns separate the columns of a table.
var columns = regexp.MustCompile(" {2,}")

// verdicts are the last columns of a table, by cell.
func verdicts(table string) map[string]string {
	found := make(map[string]string)
	for line := range strings.Lines(table) {
		if fields := columns.Split(strings.TrimSpace(line), -1); len(fields) == 11 && fields[0] != "device" {
			found[fields[0]+" "+fields[1]] = fields[10]
		}
	}
	return found
}

func TestGateOfTwoCommits(t *testing.T) {
	t.Parallel()
	tree := newTestTree(t)
	tree.measures(`
	case "shm scatter_rate": unit = "Mop/s"
	case "shm msg_bw": unit = "MB/s"
	case "shm msg_lat": fail(2, "bench: there is no case msg_lat")
	case "shm barrier_lat": unit = "ns"
	case "shm allreduce_scale": panic("old")
	case "shm pscw_put_lat": fail(1, "bench: rank 1 of 2: old")`)
	tree.commit("first")
	tree.measures(`
	case "shm put_flush_lat": value = 1.1
	case "shm scatter_rate": value, unit = 1.1, "Mop/s"
	case "shm msg_bw": value, unit = 0.8, "MB/s"
	case "shm get_flush_lat": fail(1, "bench: rank 1 of 2: new")
	case "sim:ndr-2024 put_flush_lat": value = 1.04
	case "sim:pcie-2005 pscw_put_lat": value = 1.06`)
	tree.commit("second")

	table, err := tree.gate("-against", "HEAD~1", "-rounds", "14", "-cells", "^shm (put_f|sc|.*lat|msg|barrier|allred)|^sim.*_lat")
	assert.Equal(t, map[string]string{
		"shm put_flush_lat": "SLOWER", "shm scatter_rate": "ok", "shm msg_bw": "SLOWER", "shm msg_lat": "new", "shm barrier_lat": "new",
		"shm get_flush_lat": "FAILS", "shm allreduce_scale": "fails before", "shm pscw_put_lat": "fails before",
		"sim:ndr-2024 put_flush_lat": "ok", "sim:pcie-2005 pscw_put_lat": "SLOWER",
	}, verdicts(table), table)
	assert.EqualError(t, err, "bench: gate: slower than HEAD~1 by more than 5 %: shm put_flush_lat:8 (ratio 1.10), shm msg_bw:65536 (ratio 1.25), "+
		"sim:pcie-2005 pscw_put_lat:8 (ratio 1.06); failed: shm get_flush_lat:1024")
	for _, text := range []string{
		" first (HEAD~1)\n", " second\n", "10 cells: 2 ok, 3 slower, 0 undecided, 2 new, 2 failed before, 1 failed now, in ", "1.250  1.250-1.250",
		"shm get_flush_lat:1024: exit status 1: bench: rank 1 of 2: new\n",
	} {
		assert.Contains(t, table, text)
	}

	// The new side is the work tree as it is.
	tree.git("checkout", "--quiet", "HEAD~1", "--", "bench")
	table, err = tree.gate("-against", "HEAD~1", "-cells", "shm put_f")
	assert.NoError(t, err)
	assert.Contains(t, table, " second, with 1 file changed in the work tree\nThe programs are the same, byte for byte.\n")
	assert.Contains(t, table, "1 cell: 1 ok, 0 slower, 0 undecided, in ")

	// Not one cell can be compared.
	_, err = tree.gate("-against", "HEAD~1", "-cells", "shm msg_lat")
	assert.EqualError(t, err, "bench: gate: HEAD~1 is too old: it has none of these cells, as in shm msg_lat:8: the program does not have the cell: bench: there is no case msg_lat")
}

// A gate that leaves more than a third of its cells undecided fails, and says what helps.
func TestGateThatCanSayNothing(t *testing.T) {
	rows := func(verdicts ...gate.Verdict) (rows []*gate.Row) {
		for _, v := range verdicts {
			rows = append(rows, &gate.Row{Cell: allCells()[0].cell(), Judgement: gate.Judgement{Verdict: v, Change: 1.5}})
		}
		return rows
	}
	o := &options{against: "HEAD", plan: gate.Plan{Limit: 0.05, Rounds: 60, Time: 20 * time.Minute}}
	few := rows(gate.OK, gate.OK, gate.Near, gate.Missing)
	assert.NoError(t, o.verdict(few))
	assert.Equal(t, "4 cells: 2 ok, 0 slower, 1 undecided (1 too near to the limit), 1 new", counts(few))
	many := rows(gate.OK, gate.Slower, gate.Noisy, gate.Noisy, gate.Unsound, gate.Missing, gate.OldFailed)
	assert.EqualError(t, o.verdict(many), "bench: gate: slower than HEAD by more than 5 %: shm put_flush_lat:8 (ratio 1.50); "+
		"nothing can be said: 3 of 5 measured cells undecided; more -minutes than 20 and -rounds than 60, or a quieter machine, would help")
	assert.Equal(t, "7 cells: 1 ok, 1 slower, 3 undecided (2 too noisy or with too few rounds, 1 unlike itself), 1 new, 1 failed before", counts(many))
}

func TestGateWithoutAProgram(t *testing.T) {
	t.Parallel()
	_, err := findTree(t.Context(), t.TempDir(), "HEAD")
	assert.ErrorContains(t, err, "bench: gate builds an earlier commit: run it in a git work tree: ")

	tree := newTestTree(t)
	tree.commit("without bench")
	tree.write("bench/main.go", "package main\n\nfunc main() { nonsense }\n")
	tree.commit("nonsense")
	for against, want := range map[string]string{
		"HEAD~1": "bench: gate: HEAD~1 is too old: it has no ./bench",
		"HEAD":   "undefined: nonsense",
		"none":   "bench: -against none: git knows no such commit",
		"-x":     "bench: -against -x: git knows no such commit",
	} {
		_, err := tree.gate("-against", against)
		assert.ErrorContains(t, err, want)
	}
}

// An interrupt finds the gate in git worktree add, which waits for a hook.
func TestAnInterruptedGateLeavesNothing(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("skipped: hooks need sh")
	}
	tree := newTestTree(t)
	tree.measures("")
	tree.commit("first")
	began := filepath.Join(t.TempDir(), "began")
	hook := filepath.Join(".git", "hooks", "post-checkout")
	// A process that another test starts meanwhile would have the hook open for writing: git could not run it.
	func() {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		tree.write(hook, "#!/bin/sh\nexec >/dev/null 2>&1\n: >'"+began+"'\nwhile [ -e '"+began+"' ]; do sleep 0.05; done\n")
	}()
	require.NoError(t, os.Chmod(filepath.Join(tree.dir, hook), 0o755))
	// The hook ends when the test's directory is removed, if the gate has not ended it.

	why := errors.New("received SIGINT")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, tree.dir, []string{"-against", "HEAD"}, io.Discard, io.Discard) }()
	await.True(t, "the hook to run", func() bool { _, err := os.Stat(began); return err == nil })
	cancel(why)
	assert.ErrorIs(t, await.Receive(t, "the gate to end", ended), why)
	tree.holdsNothingElse()
}

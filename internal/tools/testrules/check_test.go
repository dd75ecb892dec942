package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// imports has the packages that files of this test may import.
var imports = []string{"context", "net", "testing", "time", "github.com/stretchr/testify/assert", "github.com/stretchr/testify/require"}

// exports returns the files of export data of imports, by import path.
var exports = sync.OnceValues(func() (map[string]string, error) {
	text, err := output(".", append([]string{"list", "-export", "-deps", "-json=ImportPath,Export"}, imports...)...)
	if err != nil {
		return nil, err
	}
	files := make(map[string]string)
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listed
		switch err := decoder.Decode(&p); err {
		case nil:
			files[p.ImportPath] = p.Export
		case io.EOF:
			return files, nil
		default:
			return nil, err
		}
	}
})

// header is the beginning of a file that uses each import.
const header = `package p
import (
	"context"
	"net"
	"testing"
	"time"
	tm "time"
	. "time"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)
var (
	c   context.Context
	t   *testing.T
	_   net.Conn
	_   = assert.New
	_   = require.New
	_   tm.Time
	_   Time
	one func()
	is  func() bool
)
func run(...any) {}
func rest() time.Duration { return time.Minute }
const pause = 10 * time.Second
const limit = 2 * pause
`

// breachesOf returns the breaches in a file with this text, without their places. If the text declares nothing, it is
// the body of a function.
func breachesOf(tb testing.TB, text string, lax bool) string {
	tb.Helper()
	if !strings.Contains(text, "func f(") {
		text = "func f() {\n" + text + "\n}\n"
	}
	files, err := exports()
	require.NoError(tb, err)
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "a_test.go", header+text, parser.ParseComments)
	require.NoError(tb, err)
	from := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	breaches, err := check(set, "p", []*ast.File{file}, []*ast.File{file}, types.Importer(from), lax)
	require.NoError(tb, err)
	var lines []string
	for _, b := range breaches {
		lines = append(lines, b.text)
	}
	return strings.Join(lines, "\n")
}

func TestCheck(t *testing.T) {
	const state = ": wait for a state, by package await"
	const reason = ": give a reason that begins with \"skipped: \""
	under := func(name, limit string) string {
		return name + ": a limit of " + limit + " ends a slow run; it must be 1m0s or more"
	}
	for _, c := range []struct{ name, text, want string }{
		{"sleep", "time.Sleep(1)", "time.Sleep" + state},
		{"timer", "<-time.NewTimer(1).C; <-time.NewTicker(1).C; <-time.Tick(1); <-time.After(1)",
			"time.NewTimer" + state + "\ntime.NewTicker" + state + "\ntime.Tick" + state + "\ntime.After" + state},
		{"method of the same name", "_ = time.Now().After(time.Time{})", ""},
		{"function of the same name", "time := struct{ Sleep func(int) }{}; time.Sleep(1)", ""},
		{"renamed import", "tm.Sleep(1)", "time.Sleep" + state},
		{"dot import", "Sleep(1)", "time.Sleep" + state},
		{"function value", "f := time.Sleep; f(1)", "time.Sleep" + state},
		{"function argument", "run(time.AfterFunc)", "time.AfterFunc" + state},
		{"parentheses", "(time.Sleep)(1)", "time.Sleep" + state},
		{"never", "assert.Never(t, is, 1, 1); require.New(t).Neverf(is, 1, 1, \"\")", "assert.Never" + state + "\nrequire.Neverf" + state},

		{"computes", "time.Sleep(1) // computes", ""},
		{"computes, and why", "time.Sleep(1) // computes, in virtual time", ""},
		{"computes in a string", "time.Sleep(1); run(\"// computes\")", "time.Sleep" + state},
		{"computes within a comment", "time.Sleep(1) // not // computes", "time.Sleep" + state},
		{"another word", "time.Sleep(1) // computestoo", "time.Sleep" + state},
		{"another line", "// computes\ntime.Sleep(1)", "time.Sleep" + state},
		{"the other comment", "time.Sleep(1) // expires", "time.Sleep" + state},

		{"limit", "context.WithTimeout(c, 20*time.Second)", under("context.WithTimeout", "20s")},
		{"long limit", "context.WithTimeout(c, time.Minute)", ""},
		{"constant", "context.WithTimeoutCause(c, limit, nil)", under("context.WithTimeoutCause", "20s")},
		{"long constant", "context.WithTimeout(c, (limit+pause)*2)", ""},
		{"local constant", "const d = time.Second; context.WithTimeout(c, d)", under("context.WithTimeout", "1s")},
		{"conversion", "context.WithTimeout(c, time.Duration(3)*time.Second)", under("context.WithTimeout", "3s")},
		{"variable", "d := time.Second; context.WithTimeout(c, (d))", under("context.WithTimeout", "1s")},
		{"declared variable", "var d, e time.Duration = 1, time.Hour; context.WithTimeout(c, d); context.WithTimeout(c, e)", under("context.WithTimeout", "1ns")},
		{"variable that is assigned to", "d := time.Hour; d = time.Second; context.WithTimeout(c, d)", under("context.WithTimeout", "1s")},
		{"variable of itself", "d := rest(); d = d + d; context.WithTimeout(c, d)", ""},
		{"conversion of a variable", "n := 3; context.WithTimeout(c, time.Duration(n)*time.Second/2-1)", under("context.WithTimeout", "1.499999999s")},
		{"field", "o := struct{ d time.Duration }{d: 5}; context.WithTimeout(c, o.d)", under("context.WithTimeout", "5ns")},
		{"field without its name", "for _, o := range []struct{ d time.Duration }{{5}} { context.WithTimeout(c, o.d) }", under("context.WithTimeout", "5ns")},
		{"field of a pointer", "for _, o := range []*struct{ d time.Duration }{{5}} { context.WithTimeout(c, o.d) }", under("context.WithTimeout", "5ns")},
		{"range", "for _, d := range []time.Duration{time.Hour, 5} { context.WithTimeout(c, d) }", under("context.WithTimeout", "5ns")},
		{"parameter", "func f() { g(time.Second) }\nfunc g(d time.Duration) { context.WithTimeout(c, d) }", under("context.WithTimeout", "1s")},
		{"parameter of a generic function", "func f() { g[int](time.Second) }\nfunc g[T any](d time.Duration) { context.WithTimeout(c, d) }", under("context.WithTimeout", "1s")},
		{"limit of a function value", "f := context.WithTimeout; f(c, 1)", "context.WithTimeout: call it, so that its limit is seen"},
		{"not a constant", "context.WithTimeout(c, rest())", ""},
		{"expires", "context.WithTimeout(c, pause) // expires", ""},
		{"the value expires", "d := time.Hour\nd = 1 // expires\ncontext.WithTimeout(c, d)", ""},
		{"expires in a string", "context.WithTimeout(c, pause); run(\"// expires\")", under("context.WithTimeout", "10s")},
		{"computes for expires", "context.WithTimeout(c, pause) // computes", under("context.WithTimeout", "10s")},
		{"dial", "net.DialTimeout(\"tcp\", \"\", pause)", under("net.DialTimeout", "10s")},
		{"eventually", "assert.Eventually(t, is, pause, 1)", under("assert.Eventually", "10s")},
		{"eventually as a method", "require.New(t).Eventuallyf(is, pause, 1, \"\")", under("require.Eventuallyf", "10s")},
		{"eventually with a test", "require.EventuallyWithT(t, func(*assert.CollectT) {}, pause, 1)", under("require.EventuallyWithT", "10s")},
		{"duration between", "require.WithinDuration(t, time.Now(), time.Now(), pause)", under("require.WithinDuration", "10s")},

		{"deadline", "context.WithDeadline(c, time.Now().Add(pause))", under("time.Now().Add", "10s")},
		{"deadline of a connection", "var conn net.Conn; conn.SetDeadline(time.Now().Add(pause))", under("time.Now().Add", "10s")},
		{"deadline in a loop", "for end := time.Now().Add(pause); time.Now().Before(end); {}", under("time.Now().Add", "10s")},
		{"deadline of a variable", "now, d := time.Now(), pause; run(now.Add(d))", under("time.Now().Add", "10s")},
		{"long deadline", "run(time.Now().Add(time.Hour))", ""},
		{"past", "run(time.Now().Add(-time.Hour))", ""},
		{"sum of times", "run(time.Unix(0, 0).Add(1))", ""},
		{"deadline expires", "run(time.Now().Add(pause)) // expires", ""},
		{"deadline of a computation", "run(time.Now().Add(pause)) // computes", ""},

		{"elapsed", "run(time.Since(time.Now()) < time.Second)", under("time.Since", "1s")},
		{"elapsed on the right", "run(time.Second >= time.Since(time.Now()))", under("time.Since", "1s")},
		{"elapsed in a variable", "d := time.Since(time.Now()); run(d < time.Second)", under("time.Since", "1s")},
		{"elapsed by subtraction", "begin := time.Now(); end := time.Now(); run(end.Sub(begin) > time.Second)", under("time.Since", "1s")},
		{"elapsed between other times", "run(time.Unix(1, 0).Sub(time.Unix(0, 0)) < time.Second)", ""},
		{"elapsed for long", "run(time.Since(time.Now()) < time.Hour)", ""},
		{"elapsed, computes", "run(time.Since(time.Now()) < time.Second) // computes", ""},
		{"less", "require.Less(t, time.Since(time.Now()), time.Second)", under("time.Since", "1s")},
		{"greater", "assert.New(t).Greaterf(time.Second, time.Since(time.Now()), \"\")", under("time.Since", "1s")},
		{"at least", "require.Greater(t, time.Since(time.Now()), time.Second)", ""},

		{"skip", `t.Skip("skipped: no root: ", one); t.Skipf("skipped: %v", one)`, ""},
		{"skip with a sum", `const why = "skipped: no root"; t.Skip(why + " on " + rest().String()); t.Skip((("skipped: ") + rest().String()))`, ""},
		{"skip in other words", `t.Skip("no root"); t.Skip(rest(), "skipped: no root")`, "testing.Skip" + reason + "\ntesting.Skip" + reason},
		{"skip for an error", `t.Skipf("%v", c.Err()); var why = "skipped: it"; t.Skip(why)`, "testing.Skipf" + reason + "\ntesting.Skip" + reason},
		{"skip without a reason", "t.Skip(); t.SkipNow()", "testing.Skip" + reason + "\ntesting.SkipNow" + reason},
		{"skip of any test", `var b *testing.B; var tb testing.TB = b; tb.Skip("no root"); b.Skip("no root")`, "testing.Skip" + reason + "\ntesting.Skip" + reason},
		{"skip of another", "other := struct{ Skip func(string) }{}; other.Skip(\"no root\")", ""},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, breachesOf(t, c.text, false)) })
	}
}

// In a file that the build leaves out, whatever cannot be resolved is ignored, and the rest is checked.
func TestLax(t *testing.T) {
	require.Equal(t, "time.Sleep: wait for a state, by package await", breachesOf(t, "nothing.Sleep(missing); time.Sleep(1)", true))
}

// In a module the rules apply to tests, and to packages that only tests use, on every platform.
func TestRun(t *testing.T) {
	root := t.TempDir()
	const sleep = "\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n"
	for name, text := range map[string]string{
		"go.mod":                 "module m\n\ngo 1.26\n",
		"p/p.go":                 "package p" + sleep,
		"p/p_test.go":            "package p\n\nimport (\n\t_ \"m/helper\"\n\t\"time\"\n)\n\nfunc Limit() time.Duration { return 1 }\n\nfunc g() { time.Sleep(1) }\n",
		"p/x_test.go":            "package p_test\n\nimport (\n\t\"m/p\"\n\t\"time\"\n)\n\nfunc f() { time.Sleep(p.Limit()) }\n",
		"p/none_test.go":         "//go:build never\n\npackage p" + sleep,
		"helper/a.go":            "package helper\n\nimport _ \"m/deeper\"\n" + sleep[1:],
		"deeper/a.go":            "package deeper" + sleep,
		"tester/a.go":            "package tester\n\nimport _ \"testing\"\n" + sleep[1:],
		"both/a.go":              "package both" + sleep,
		"both/a_test.go":         "package both\n",
		"main/main.go":           "package main\n\nimport _ \"m/both\"\n\nfunc main() {}\n",
		"await/a_test.go":        "package await" + sleep,
		"p/testdata/d/a_test.go": "package d" + sleep,
	} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	checked := func(dir string) []string {
		var out strings.Builder
		n, err := run(&out, dir)
		require.NoError(t, err)
		require.Equal(t, n, strings.Count(out.String(), "\n"))
		return strings.Fields(strings.ReplaceAll(strings.ReplaceAll(out.String(), ": time.Sleep: wait for a state, by package await", ""), root+"/", ""))
	}
	require.Equal(t, []string{"deeper/a.go:5", "helper/a.go:7", "p/none_test.go:7", "p/p_test.go:10", "p/x_test.go:8", "tester/a.go:7"}, checked(root))
	require.Equal(t, []string{"helper/a.go:7"}, checked(filepath.Join(root, "helper")), "a helper is one although only its directory is checked")

	require.NoError(t, os.WriteFile(filepath.Join(root, "p", "p.go"), []byte("package p\n\nfunc f() { nonsense }\n"), 0o644))
	_, err := run(io.Discard, root)
	require.ErrorContains(t, err, "undefined: nonsense")
}

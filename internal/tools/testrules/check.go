package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A breach is a line of a file that breaks a rule.
type breach struct {
	file string
	line int
	text string
}

// The comments that make an exception, at the end of the line.
const (
	computes = "computes"
	expires  = "expires"
)

// exception matches a comment that makes an exception.
var exception = regexp.MustCompile(`^// (` + computes + `|` + expires + `)\b`)

// shortest is the least allowed limit.
const shortest = time.Minute

// timed are the functions that wait for a time or schedule an action after it, as types.Func.FullName names them.
var timed = map[string]bool{
	"time.Sleep": true, "time.After": true, "time.AfterFunc": true, "time.Tick": true, "time.NewTimer": true, "time.NewTicker": true,
}

// A parameter has the index of a function's parameter that is a limit, and the index of the time compared with it, or
// none.
type parameter struct{ limit, elapsed int }

const none = -1

// limits are the functions that have a limit.
var limits = map[string]parameter{
	"context.WithTimeout": {1, none}, "context.WithTimeoutCause": {1, none}, "net.DialTimeout": {2, none},
}

// skips are the methods that skip a test.
var skips = make(map[string]bool)

// skipped begins the reason of a skipped test.
const skipped = "skipped: "

func init() {
	for _, of := range []string{"(*testing.common).", "(testing.TB)."} {
		for _, name := range []string{"Skip", "Skipf", "SkipNow"} {
			skips[of+name] = true
		}
	}
	for _, name := range []string{"assert", "require"} {
		path := "github.com/stretchr/testify/" + name
		for _, f := range []string{"", "f"} {
			timed[path+".Never"+f], timed["(*"+path+".Assertions).Never"+f] = true, true
			for name, p := range map[string]parameter{
				"Eventually": {2, none}, "EventuallyWithT": {2, none}, "WithinDuration": {3, none},
				"Less": {2, 1}, "LessOrEqual": {2, 1}, "Greater": {1, 2}, "GreaterOrEqual": {1, 2},
			} {
				limits[path+"."+name+f] = p
				limits["(*"+path+".Assertions)."+name+f] = parameter{p.limit - 1, max(p.elapsed-1, none)}
			}
		}
	}
}

// A checker checks files of a package.
type checker struct {
	*flows
	set      *token.FileSet
	excuses  map[string]map[int]string // words of comments that make exceptions, by file and line
	breaches []breach
}

// check type-checks a package and returns the breaches in some of its files. With lax it ignores what cannot be
// resolved.
func check(set *token.FileSet, path string, files, checked []*ast.File, from types.Importer, lax bool) ([]breach, error) {
	config := types.Config{Importer: from, FakeImportC: true}
	if lax {
		config.Error = func(error) {}
	}
	c := &checker{set: set, excuses: make(map[string]map[int]string)}
	c.flows = newFlows(func(at token.Pos) bool { return c.excused(at, expires) })
	if _, err := config.Check(path, set, files, c.info); err != nil && !lax {
		return nil, err
	}
	for _, file := range files {
		c.comments(file)
	}
	for _, file := range files {
		c.collect(file)
	}
	for _, file := range checked {
		c.file(file)
	}
	return c.breaches, nil
}

func (c *checker) comments(file *ast.File) {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if word := exception.FindStringSubmatch(comment.Text); word != nil {
				at := c.set.Position(comment.Pos())
				if c.excuses[at.Filename] == nil {
					c.excuses[at.Filename] = make(map[int]string)
				}
				c.excuses[at.Filename][at.Line] = word[1]
			}
		}
	}
}

// breach records a breach, unless its line has one of the words that excuse it.
func (c *checker) breach(at token.Pos, text string, excuses ...string) {
	if where := c.set.Position(at); !c.excused(at, excuses...) {
		c.breaches = append(c.breaches, breach{where.Filename, where.Line, text})
	}
}

// excused reports whether the line of a position has a comment with one of the words.
func (c *checker) excused(at token.Pos, words ...string) bool {
	where := c.set.Position(at)
	return slices.Contains(words, c.excuses[where.Filename][where.Line])
}

func (c *checker) limit(at token.Pos, name string, expression ast.Expr, excuses ...string) {
	if limit, ok := c.least(expression); ok && time.Duration(limit) < shortest {
		c.breach(at, fmt.Sprintf("%s: a limit of %v ends a slow run; it must be %v or more", name, time.Duration(limit), shortest), excuses...)
	}
}

func (c *checker) file(file *ast.File) {
	called := make(map[*ast.Ident]bool)
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.CallExpr:
			if name := identifier(n.Fun); name != nil {
				called[name] = true
				c.call(n, name)
			}
		case *ast.BinaryExpr:
			switch n.Op {
			case token.LSS, token.LEQ, token.GTR, token.GEQ:
				c.comparison(n, n.X, n.Y)
				c.comparison(n, n.Y, n.X)
			}
		case *ast.Ident:
			f, ok := c.info.Uses[n].(*types.Func)
			if !ok {
				return true
			}
			p, limited := limits[f.FullName()]
			switch {
			case timed[f.FullName()]:
				c.breach(n.Pos(), short(f)+": wait for a state, by package await", computes)
			case limited && p.elapsed == none && !called[n]:
				c.breach(n.Pos(), short(f)+": call it, so that its limit is seen", expires)
			}
		}
		return true
	})
}

// call checks the limit of a call, or the reason of one that skips a test.
func (c *checker) call(call *ast.CallExpr, name *ast.Ident) {
	f, ok := c.info.Uses[name].(*types.Func)
	if !ok {
		return
	}
	if skips[f.FullName()] && (len(call.Args) == 0 || !c.begins(call.Args[0], skipped)) {
		c.breach(name.Pos(), short(f)+": give a reason that begins with \""+skipped+"\"")
	}
	if p, ok := limits[f.FullName()]; ok && max(p.limit, p.elapsed) < len(call.Args) {
		switch {
		case p.elapsed == none:
			c.limit(name.Pos(), short(f), call.Args[p.limit], expires)
		case c.canBe(call.Args[p.elapsed], c.elapsed):
			c.limit(name.Pos(), "time.Since", call.Args[p.limit], expires, computes)
		}
	}
	selector, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if ok && f.FullName() == addition && len(call.Args) == 1 && c.canBe(selector.X, c.now) {
		// A time in the past has passed on every machine.
		if shift, ok := c.least(call.Args[0]); ok && shift > 0 {
			c.limit(name.Pos(), "time.Now().Add", call.Args[0], expires, computes)
		}
	}
}

// begins reports whether a string begins with a prefix, by the constant at its beginning.
func (c *checker) begins(e ast.Expr, prefix string) bool {
	if value := c.info.Types[e].Value; value != nil && value.Kind() == constant.String {
		return strings.HasPrefix(constant.StringVal(value), prefix)
	}
	sum, ok := ast.Unparen(e).(*ast.BinaryExpr)
	return ok && sum.Op == token.ADD && c.begins(sum.X, prefix)
}

// comparison checks a limit with which a time is compared.
func (c *checker) comparison(operator *ast.BinaryExpr, elapsed, limit ast.Expr) {
	if c.canBe(elapsed, c.elapsed) {
		c.limit(operator.OpPos, "time.Since", limit, expires, computes)
	}
}

// short returns the name of a function with the last part of its package's path.
func short(f *types.Func) string { return f.Pkg().Name() + "." + f.Name() }

package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The words of a comment that make an exception, on the line of the call.
const (
	computes = "// computes"
	expires  = "// expires"
)

// shortest is what a limit must be at least.
const shortest = time.Minute

// timed are the functions of package time that wait or have something done later.
var timed = []string{"Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// limits are the functions of package context that take a duration, and which argument that is.
var limits = map[string]int{"WithTimeout": 1, "WithTimeoutCause": 1}

// check returns the breaches of the package in a directory.
func check(dir string) (breaches []string, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	p := &checked{set: token.NewFileSet(), constants: make(map[string]ast.Expr)}
	files := make(map[string]*ast.File)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(p.set, path, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.constantsOf(file)
		if holds(path) {
			files[path] = file
		}
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		breaches = append(breaches, p.file(files[path], strings.Split(string(text), "\n"))...)
	}
	return breaches, nil
}

// holds reports whether the rules hold in a file: in tests, and in packages of which only tests make use. Package await
// is where waiting is done.
func holds(path string) bool {
	dir := filepath.Base(filepath.Dir(path))
	return dir != "await" && (strings.HasSuffix(path, "_test.go") || strings.HasSuffix(dir, "test"))
}

// checked is the package that is being checked.
type checked struct {
	set *token.FileSet
	// constants are those of the package, by name.
	constants map[string]ast.Expr
}

func (p *checked) constantsOf(file *ast.File) {
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.CONST {
			continue
		}
		for _, spec := range general.Specs {
			values := spec.(*ast.ValueSpec)
			for i, value := range values.Values {
				p.constants[values.Names[i].Name] = value
			}
		}
	}
}

func (p *checked) file(file *ast.File, lines []string) (breaches []string) {
	ast.Inspect(file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		from, name := function(call)
		at := p.set.Position(call.Pos())
		line := lines[at.Line-1]
		switch {
		case from == "time" && slices.Contains(timed, name) && !strings.Contains(line, computes):
			breaches = append(breaches, fmt.Sprintf("%s:%d: time.%s: wait for a state, by package await", at.Filename, at.Line, name))
		case from == "context" && limits[name] > 0 && limits[name] < len(call.Args) && !strings.Contains(line, expires):
			if limit, ok := p.duration(call.Args[limits[name]]); ok && limit < shortest {
				breaches = append(breaches, fmt.Sprintf("%s:%d: context.%s: a limit of %v ends a slow run; it must be %v or more", at.Filename, at.Line, name, limit, shortest))
			}
		}
		return true
	})
	return breaches
}

// function returns the package, as it is called in the file, and the name of what a call calls.
func function(call *ast.CallExpr) (from, name string) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	qualifier, ok := selector.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	return qualifier.Name, selector.Sel.Name
}

var units = map[string]time.Duration{
	"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
	"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
}

// duration evaluates an expression, if it is a constant that this program understands.
func (p *checked) duration(expression ast.Expr) (time.Duration, bool) {
	value := p.evaluate(expression, 0)
	n, exact := constant.Int64Val(constant.ToInt(value))
	return time.Duration(n), exact && value.Kind() != constant.Unknown
}

// deepest bounds constants that are defined by themselves, which a file that does not compile can have.
const deepest = 20

func (p *checked) evaluate(expression ast.Expr, depth int) constant.Value {
	unknown := constant.MakeUnknown()
	if depth > deepest {
		return unknown
	}
	switch e := expression.(type) {
	case *ast.ParenExpr:
		return p.evaluate(e.X, depth+1)
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.Ident:
		if value, ok := p.constants[e.Name]; ok {
			return p.evaluate(value, depth+1)
		}
	case *ast.SelectorExpr:
		if from, ok := e.X.(*ast.Ident); ok && from.Name == "time" && units[e.Sel.Name] != 0 {
			return constant.MakeInt64(int64(units[e.Sel.Name]))
		}
	case *ast.BinaryExpr:
		x, y := p.evaluate(e.X, depth+1), p.evaluate(e.Y, depth+1)
		if x.Kind() == constant.Unknown || y.Kind() == constant.Unknown {
			return unknown
		}
		switch e.Op {
		case token.ADD, token.SUB, token.MUL:
			return constant.BinaryOp(x, e.Op, y)
		case token.QUO:
			if constant.Sign(y) != 0 {
				return constant.BinaryOp(x, e.Op, y)
			}
		}
	}
	return unknown
}

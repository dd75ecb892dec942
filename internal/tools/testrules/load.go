package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A listed is the output of go list -test for a package, or for a variant of it for the tests of a package.
type listed struct {
	ImportPath, ForTest, Dir, Export string
	DepOnly                          bool

	GoFiles, CgoFiles, IgnoredGoFiles  []string
	Imports, TestImports, XTestImports []string
	ImportMap                          map[string]string
}

// path returns the import path without the variant.
func (p *listed) path() string {
	path, _, _ := strings.Cut(p.ImportPath, " ")
	return path
}

// A module is a Go module, with the directory that is checked.
type module struct {
	root     string // as the caller names it
	absolute string
	packages []*listed
	exports  map[string]string // files of export data, by import path and variant
	tests    map[string]bool   // import paths of test packages
	set      *token.FileSet
	// importers are the importers of variants, each for the tests of one package.
	importers map[string]types.Importer
}

// load lists the packages of the module around root, and builds those that are out of date.
func load(root string) (*module, error) {
	m := &module{root: root, exports: make(map[string]string), set: token.NewFileSet(), importers: make(map[string]types.Importer)}
	var err error
	if m.absolute, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	// go list resolves symbolic links in directories.
	if m.absolute, err = filepath.EvalSymlinks(m.absolute); err != nil {
		return nil, err
	}
	file, err := output(m.absolute, "env", "GOMOD")
	if err != nil {
		return nil, err
	}
	text, err := output(filepath.Dir(strings.TrimSpace(string(file))), "list", "-export", "-test", "-deps",
		"-json=ImportPath,ForTest,Dir,Export,DepOnly,GoFiles,CgoFiles,IgnoredGoFiles,Imports,TestImports,XTestImports,ImportMap", "./...")
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		p := new(listed)
		if err := decoder.Decode(p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		m.exports[p.ImportPath] = p.Export
		if !p.DepOnly && !strings.HasSuffix(p.path(), ".test") {
			m.packages = append(m.packages, p)
		}
	}
	m.tests = testPackages(m.packages)
	return m, nil
}

func output(dir string, arguments ...string) ([]byte, error) {
	c := exec.Command("go", arguments...)
	c.Dir = dir
	text, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("go %s: %w\n%s", arguments[0], err, exit.Stderr)
	}
	return text, err
}

// testPackages returns the packages that import package testing, and those that only tests and other test packages
// import.
func testPackages(packages []*listed) map[string]bool {
	tests, importers, imported := make(map[string]bool), make(map[string][]string), make(map[string]bool)
	for _, p := range packages {
		if p.ForTest != "" {
			continue
		}
		tests[p.ImportPath] = slices.Contains(p.Imports, "testing")
		for _, path := range p.Imports {
			importers[path] = append(importers[path], p.ImportPath)
		}
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			imported[path] = imported[path] || path != p.ImportPath && path+"_test" != p.ImportPath
		}
	}
	for again := true; again; {
		again = false
		for path, is := range tests {
			if !is && imported[path] && !slices.ContainsFunc(importers[path], func(by string) bool { return !tests[by] }) {
				tests[path], again = true, true
			}
		}
	}
	return tests
}

// holds reports whether the rules apply to a file of a package. They do not apply to package await, which does the
// waiting.
func (m *module) holds(p *listed, file string) bool {
	path := strings.TrimSuffix(p.path(), "_test")
	return filepath.Base(path) != "await" && (strings.HasSuffix(file, "_test.go") || m.tests[path])
}

// below reports whether a package's directory is within the one that is checked.
func (m *module) below(p *listed) bool {
	inside, err := filepath.Rel(m.absolute, p.Dir)
	return err == nil && filepath.IsLocal(inside)
}

// fullest reports whether a variant has the package's own tests, or there are none.
func (m *module) fullest(p *listed) bool {
	if p.ForTest == "" {
		_, tested := m.exports[fmt.Sprintf("%s [%s.test]", p.ImportPath, p.ImportPath)]
		return !tested
	}
	return strings.TrimSuffix(p.path(), "_test") == p.ForTest
}

// check returns the breaches, in the order of files and lines.
func (m *module) check() ([]string, error) {
	found := make(map[breach]bool)
	for _, p := range m.packages {
		if !m.below(p) || !m.fullest(p) {
			continue
		}
		if err := m.variant(p, found); err != nil {
			return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
	}
	var lines []string
	for _, b := range slices.SortedFunc(maps.Keys(found), func(a, b breach) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.text, b.text))
	}) {
		lines = append(lines, fmt.Sprintf("%s:%d: %s", b.file, b.line, b.text))
	}
	return lines, nil
}

// variant checks a variant of a package. Files that a build leaves out are checked one by one beside the others.
func (m *module) variant(p *listed, found map[breach]bool) error {
	built := slices.Concat(p.GoFiles, p.CgoFiles)
	held := func(names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !m.holds(p, name) })
	}
	files := make(map[string]*ast.File)
	parse := func(names ...string) (parsed []*ast.File, err error) {
		for _, name := range names {
			if files[name] == nil {
				path := filepath.Join(p.Dir, name)
				inside, err := filepath.Rel(m.absolute, path)
				if err != nil {
					return nil, err
				}
				text, err := os.ReadFile(path)
				if err != nil {
					return nil, err
				}
				if files[name], err = parser.ParseFile(m.set, filepath.Join(m.root, inside), text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
					return nil, err
				}
			}
			parsed = append(parsed, files[name])
		}
		return parsed, nil
	}
	take := func(names, checked []string, lax bool) error {
		if len(checked) == 0 {
			return nil
		}
		all, err := parse(names...)
		if err != nil {
			return err
		}
		these, err := parse(checked...)
		if err != nil {
			return err
		}
		breaches, err := check(m.set, p.path(), all, these, m.importer(p), lax)
		for _, b := range breaches {
			found[b] = true
		}
		return err
	}
	if err := take(built, held(built), false); err != nil {
		return err
	}
	for _, name := range held(p.IgnoredGoFiles) {
		if err := take(append([]string{name}, built...), []string{name}, true); err != nil {
			return err
		}
	}
	return nil
}

// importer returns the importer of a variant. Variants for the tests of one package share it, because they import the
// same variants of others.
func (m *module) importer(p *listed) types.Importer {
	key := p.ForTest
	if m.importers[key] == nil {
		m.importers[key] = importer.ForCompiler(m.set, "gc", func(path string) (io.ReadCloser, error) {
			for _, variant := range []string{fmt.Sprintf("%s [%s.test]", path, key), path} {
				if file := m.exports[variant]; file != "" {
					return os.Open(file)
				}
			}
			return nil, fmt.Errorf("no export data of %s", path)
		})
	}
	return m.importers[key]
}

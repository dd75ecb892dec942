package main

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layers are the packages of bench. A package imports only those before it.
var layers = []string{
	"stats", "table", "cli", "chart", "machine", "program", "device",
	"cases", "plan", "toggles", "runner",
	"gate", "compare", "peers",
	"experiments/schemes", "experiments/switches", "experiments/scale", "experiments/kernels", "experiments/regression",
	"paper", "report",
}

// helpers are of tests only.
var helpers = []string{"benchtest", "golden", "chart/charttest", "plan/plantest"}

func TestPackagesImportThoseBelow(t *testing.T) {
	const prefix = "github.com/onesided/rma/bench/internal/"
	var found []string
	require.NoError(t, filepath.WalkDir("internal", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || entry.Name() == "testdata" {
			return err
		}
		p, err := build.ImportDir(path, 0)
		if _, none := err.(*build.NoGoError); none {
			return nil
		}
		require.NoError(t, err, path)
		name := strings.TrimPrefix(filepath.ToSlash(path), "internal/")
		found = append(found, name)
		if slices.Contains(helpers, name) {
			return nil
		}
		for _, imported := range p.Imports {
			if below, ok := strings.CutPrefix(imported, prefix); ok {
				at := slices.Index(layers, below)
				assert.True(t, 0 <= at && at < slices.Index(layers, name), "%s imports %s", name, below)
			}
		}
		return nil
	}))
	assert.ElementsMatch(t, append(slices.Clone(layers), helpers...), found)
}

// A package of bench is small enough to be read at once, and its structs have few fields.
func TestPackagesAreSmall(t *testing.T) {
	const mostFiles, mostFields = 20, 20
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		require.NoError(t, err)
		code := slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
		assert.LessOrEqual(t, len(code), mostFiles, path)
		for _, file := range code {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			ast.Inspect(parsed, func(n ast.Node) bool {
				if s, ok := n.(*ast.StructType); ok {
					assert.LessOrEqual(t, s.Fields.NumFields(), mostFields, "a struct of %s", file)
				}
				return true
			})
		}
		return nil
	}))
}

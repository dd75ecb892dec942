package docs_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/doctest"
)

// A fragment is a block of Go that is no whole program. It is checked as the body of a function whose parameters are the variables
// that the document has introduced: usual in every document, and preludes in some.
const usual = "ctx context.Context, w *world.World, win *window.Window[int64], body func(context.Context, *world.World) error"

var preludes = map[string]string{
	"guide/failure.md":         "cancel context.CancelCauseFunc",
	"guide/launching.md":       "certificate tls.Certificate, authorities *x509.CertPool",
	"guide/performance.md":     "values []int64, places []int, target int",
	"guide/rdma.md":            "address string, key []byte, buffer []float64",
	"guide/served-windows.md":  "listener *world.Listener, server *window.Server, id uint64",
	"guide/synchronization.md": "edge []int64, left, right, owner int",
	"guide/virtual-time.md":    "s *sim.Simulator",
}

// fragmentImports are the packages outside of testdata/api that fragments use.
var fragmentImports = []string{
	"context", "crypto/tls", "crypto/x509", "errors", "fmt", "log", "log/slog", "os", "testing", "time",
	module + "/internal/jobtest", module + "/internal/shadow",
}

const module = "github.com/onesided/rma"

// Every fragment of the documents passes go vet, which checks its types.
func TestFragments(t *testing.T) {
	t.Parallel()
	var fragments []doctest.Block
	for _, file := range documents(t) {
		for _, b := range doctest.Blocks(t, file) {
			if b.Language == "go" && !b.IsProgram() {
				fragments = append(fragments, b)
			}
		}
	}
	require.Greater(t, len(fragments), 20)
	said, err := vet(t, fragments)
	require.NoError(t, err, "%s", said)
}

// What is wrong in a fragment is reported with the name of the document and the number of the line.
func TestWrongFragments(t *testing.T) {
	t.Parallel()
	for where, b := range map[string]doctest.Block{
		"guide/served-windows.md:8:": {File: "guide/served-windows.md", Line: 7, Text: "one := 1\nerr := win.Lock(ctx, one)\n"},
		"testing.md:3:":              {File: "testing.md", Line: 3, Text: "var two int = nothing\n"},
	} {
		said, err := vet(t, []doctest.Block{b})
		require.Error(t, err)
		require.Contains(t, said, where)
	}
}

// vet checks fragments together, as the files of one package, and returns what go vet says of them.
func vet(t *testing.T, fragments []doctest.Block) (said string, err error) {
	t.Helper()
	packages, dir, replaced := importable(t), t.TempDir(), map[string]string{}
	const place = "./testdata"
	for i, b := range fragments {
		file, name := filepath.Join(dir, fmt.Sprintf("%d.go", i)), filepath.Join(place, fmt.Sprintf("fragment%d.go", i))
		require.NoError(t, os.WriteFile(file, []byte(fragmentFile(t, b, i, packages)), 0o600))
		at, err := filepath.Abs(name)
		require.NoError(t, err)
		replaced[at] = file
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	overlay := filepath.Join(dir, "overlay")
	require.NoError(t, os.WriteFile(overlay, text, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "vet", "-overlay", overlay, place).CombinedOutput()
	return string(out), err
}

// importable returns the import paths of packages that fragments may use, by name.
func importable(t *testing.T) map[string]string {
	t.Helper()
	packages := map[string]string{}
	for _, one := range fragmentImports {
		packages[path.Base(one)] = one
	}
	require.NoError(t, filepath.WalkDir(apiDirectory, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(apiDirectory, strings.TrimSuffix(file, ".txt"))
			packages[path.Base(filepath.ToSlash(name))] = module + "/" + filepath.ToSlash(name)
		}
		return err
	}))
	return packages
}

// fragmentFile returns a source file of fragment number i. Its positions are those of the document.
func fragmentFile(t *testing.T, b doctest.Block, i int, packages map[string]string) string {
	t.Helper()
	document, err := filepath.Abs(b.File)
	require.NoError(t, err)
	text := fmt.Sprintf("\n//line %s:%d\n%s", document, b.Line, b.Text)
	if _, err := parser.ParseFile(token.NewFileSet(), "", "package fragments\n"+b.Text, 0); err != nil {
		text = inFunction(t, b, i, text)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", "package fragments\n"+text, 0)
	require.NoError(t, err, "%v", b)
	var imports []string
	for _, name := range file.Unresolved {
		if found, ok := packages[name.Name]; ok && !slices.Contains(imports, found) {
			imports = append(imports, found)
		}
	}
	head := "package fragments\n"
	for _, one := range imports {
		head += fmt.Sprintf("import %q\n", one)
	}
	return head + text
}

// inFunction returns the text of a fragment of statements within a function. It is a block of its own in there, because it may
// declare variables that the function has as parameters. Variables that only later text of the document would use are used.
func inFunction(t *testing.T, b doctest.Block, i int, text string) string {
	t.Helper()
	head := fmt.Sprintf("\nfunc fragment%d(%s) (err error) {\n{", i, strings.Trim(usual+", "+preludes[filepath.ToSlash(b.File)], ", "))
	file, err := parser.ParseFile(token.NewFileSet(), "", "package fragments\n"+head+text+"}\nreturn err\n}\n", 0)
	require.NoError(t, err, "%v", b)
	var declared []string
	statements := file.Decls[0].(*ast.FuncDecl).Body.List[0].(*ast.BlockStmt).List
	for _, s := range statements {
		switch s := s.(type) {
		case *ast.ReturnStmt:
			return head + text + "}\n}\n"
		case *ast.AssignStmt:
			for _, left := range s.Lhs {
				if name, ok := left.(*ast.Ident); ok && s.Tok == token.DEFINE && name.Name != "_" {
					declared = append(declared, name.Name)
				}
			}
		}
	}
	for _, name := range declared {
		text += "_ = " + name + "\n"
	}
	return head + text + "}\nreturn err\n}\n"
}

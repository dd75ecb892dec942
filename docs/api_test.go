package docs_test

import (
	"bytes"
	"flag"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewriteAPI = flag.Bool("rewrite-api", false, "rewrite testdata/api")

// apiDirectory has a file of exported names for each public package.
const apiDirectory = "testdata/api"

// mostNames bounds the exported names of the two packages that every program uses, and mostPackages the public packages.
var mostNames = map[string]int{"world.txt": 90, "window.txt": 150}

const mostPackages = 24

// internalTypes are the exported types that are made in an internal package on purpose.
var internalTypes = []string{
	"type PeerError = job.PeerError",
	"type RankError = job.RankError",
	"type RejectionError = job.RejectionError",
}

// A public package is one that programs outside of this module can import. Its exported names and their signatures change
// only together with their file in testdata/api, so that each change of them is a decision. No signature has a type of an
// internal package, which programs could not name.
func TestAPI(t *testing.T) {
	files := map[string]string{}
	for directory, sources := range publicPackages(t, "..") {
		names := exportedNames(sources)
		files[filepath.FromSlash(directory)+".txt"] = names
		require.Empty(t, withInternalTypes(sources, names), "%s exports types that programs cannot name", directory)
	}
	require.LessOrEqual(t, len(files), mostPackages)
	for name, most := range mostNames {
		require.LessOrEqual(t, countNames(files[name]), most, name)
	}
	if *rewriteAPI {
		require.NoError(t, os.RemoveAll(apiDirectory))
		for name, text := range files {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(apiDirectory, name)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(apiDirectory, name), []byte(text), 0o644))
		}
	}
	recorded := map[string]string{}
	require.NoError(t, filepath.WalkDir(apiDirectory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(apiDirectory, path)
		recorded[name] = string(text)
		return err
	}))
	const advice = "if this is meant: go test ./docs -run TestAPI -rewrite-api"
	for name, text := range files {
		require.Equal(t, recorded[name], text, "the exported names of %s have changed; %s", strings.TrimSuffix(name, ".txt"), advice)
		delete(recorded, name)
	}
	require.Empty(t, recorded, "these packages are no longer public; %s", advice)
}

// publicPackages returns the parsed files of each package under root that programs can import, by its directory.
func publicPackages(t *testing.T, root string) map[string][]*ast.File {
	packages := map[string][]*ast.File{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if path != root && (name == "internal" || name == "testdata" || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil || file.Name.Name == "main" {
			return err
		}
		directory, err := filepath.Rel(root, filepath.Dir(path))
		directory = filepath.ToSlash(directory)
		packages[directory] = append(packages[directory], file)
		return err
	}))
	return packages
}

// exportedNames returns one line for each exported constant, variable, function, type and method, and one for each
// exported field and method of an interface, sorted. Methods that a type has from an unexported embedded one count as its own.
func exportedNames(files []*ast.File) string {
	var lines []string
	add := func(parts ...string) { lines = append(lines, strings.Join(parts, " ")) }
	methods := map[string][]*ast.FuncDecl{}
	types := map[string]*ast.TypeSpec{}
	for _, file := range files {
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				switch {
				case !d.Name.IsExported():
				case d.Recv == nil:
					add(signature(d))
				default:
					of := receiver(d)
					methods[of] = append(methods[of], d)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.ValueSpec:
						for _, name := range s.Names {
							if name.IsExported() {
								add(d.Tok.String(), name.Name)
							}
						}
					case *ast.TypeSpec:
						types[s.Name.Name] = s
					}
				}
			}
		}
	}
	for name, spec := range types {
		if !spec.Name.IsExported() {
			continue
		}
		add("type", name+kind(spec))
		for _, member := range members(spec.Type) {
			add("type", name, member)
		}
		for _, of := range append([]string{name}, embedded(types, spec)...) {
			for _, method := range methods[of] {
				add("method", name+"."+strings.TrimPrefix(signature(method), "func "))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "\n") + "\n"
}

// withInternalTypes returns the lines of exportedNames that name a type of an internal package, without internalTypes.
func withInternalTypes(files []*ast.File, names string) (lines []string) {
	for _, file := range files {
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if !strings.Contains(imported, "/internal/") {
				continue
			}
			name := path.Base(imported)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			uses := regexp.MustCompile(`(^|[^.\w]|\.\.\.)` + regexp.QuoteMeta(name) + `\.`)
			for line := range strings.Lines(names) {
				if line = strings.TrimSuffix(line, "\n"); uses.MatchString(line) && !slices.Contains(internalTypes, line) {
					lines = append(lines, line)
				}
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// countNames counts the exported names among lines of exportedNames: constants, variables, functions, types and methods of these.
func countNames(lines string) (n int) {
	for line := range strings.Lines(lines) {
		fields := strings.Fields(line)
		if fields[0] != "type" || len(fields) < 3 || fields[2] != "has" && fields[2] != "embeds" {
			n++
		}
	}
	return n
}

// signature returns a function's declaration without its receiver and body.
func signature(d *ast.FuncDecl) string {
	bare := *d
	bare.Doc, bare.Recv, bare.Body = nil, nil, nil
	return text(&bare)
}

// receiver returns the name of the type whose method d is.
func receiver(d *ast.FuncDecl) string {
	name := strings.TrimPrefix(text(d.Recv.List[0].Type), "*")
	name, _, _ = strings.Cut(name, "[")
	return name
}

// kind returns what a type is, as far as it is exported: its parameters, and the word struct or interface or what it is made from.
func kind(spec *ast.TypeSpec) string {
	var b strings.Builder
	if spec.TypeParams != nil {
		b.WriteString("[")
		for i, parameter := range spec.TypeParams.List {
			if i > 0 {
				b.WriteString(", ")
			}
			for j, name := range parameter.Names {
				if j > 0 {
					b.WriteString(", ")
				}
				b.WriteString(name.Name)
			}
			b.WriteString(" " + text(parameter.Type))
		}
		b.WriteString("]")
	}
	if spec.Assign.IsValid() {
		b.WriteString(" =")
	}
	switch spec.Type.(type) {
	case *ast.StructType:
		b.WriteString(" struct")
	case *ast.InterfaceType:
		b.WriteString(" interface")
	default:
		b.WriteString(" " + text(spec.Type))
	}
	return b.String()
}

// members returns the exported fields of a struct, or the methods of an interface.
func members(of ast.Expr) (lines []string) {
	var list []*ast.Field
	switch t := of.(type) {
	case *ast.StructType:
		list = t.Fields.List
	case *ast.InterfaceType:
		list = t.Methods.List
	}
	for _, member := range list {
		function, isMethod := member.Type.(*ast.FuncType)
		if len(member.Names) == 0 {
			if name := text(member.Type); ast.IsExported(name[strings.LastIndexAny(name, ".*")+1:]) {
				lines = append(lines, "embeds "+name)
			}
		}
		for _, name := range member.Names {
			switch {
			case !name.IsExported():
			case isMethod:
				lines = append(lines, "has "+name.Name+strings.TrimPrefix(text(function), "func"))
			default:
				lines = append(lines, "has "+name.Name+" "+text(member.Type))
			}
		}
	}
	return lines
}

// embedded returns the unexported types of the package whose methods a struct has by embedding them.
func embedded(types map[string]*ast.TypeSpec, spec *ast.TypeSpec) (names []string) {
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, field := range structure.Fields.List {
		name, _, _ := strings.Cut(strings.TrimPrefix(text(field.Type), "*"), "[")
		if inner := types[name]; len(field.Names) == 0 && inner != nil && !inner.Name.IsExported() {
			names = append(append(names, name), embedded(types, inner)...)
		}
	}
	return names
}

// text returns a node as gofmt writes it, in one line.
func text(node ast.Node) string {
	var b bytes.Buffer
	if err := format.Node(&b, token.NewFileSet(), node); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

package docs_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/doctest"
)

// documents are the files of this module that are written for readers.
func documents(t *testing.T) (files []string) {
	t.Helper()
	for _, pattern := range []string{"../*.md", "*.md", "guide/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	require.Greater(t, len(files), 10)
	return files
}

// environment is that of this process without the variables of the library.
func environment(more ...string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "RMA_") }), more...)
}

// Every program of the documents builds. If the next block is its output, after a sentence with "prints", it prints that on four
// ranks, in any order of lines.
func TestPrograms(t *testing.T) {
	for _, file := range documents(t) {
		blocks := doctest.Blocks(t, file)
		for i, b := range blocks {
			if !b.IsProgram() {
				continue
			}
			t.Run(b.String(), func(t *testing.T) {
				t.Parallel()
				program := doctest.Build(t, b)
				after := slices.IndexFunc(blocks[i+1:], func(b doctest.Block) bool { return b.Language == "" && strings.Contains(b.Before, "print") })
				if after < 0 || slices.ContainsFunc(blocks[i+1:i+1+after], doctest.Block.IsProgram) {
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
				defer cancel()
				command := exec.CommandContext(ctx, program)
				command.Dir, command.Env = t.TempDir(), environment("RMA_RANKS=4")
				out, err := command.Output()
				require.NoError(t, err)
				require.Equal(t, slices.Sorted(strings.Lines(blocks[i+1+after].Text)), slices.Sorted(strings.Lines(string(out))))
			})
		}
	}
}

// Every command block that is marked sh works on this machine, in the directory of this module. One that makes a module, or runs the
// program of its directory, works in the directory of the program before it in its document, or else of the first program.
func TestCommands(t *testing.T) {
	first := doctest.Blocks(t, "../README.md")
	for _, file := range documents(t) {
		program := first[slices.IndexFunc(first, doctest.Block.IsProgram)]
		for _, b := range doctest.Blocks(t, file) {
			if b.IsProgram() {
				program = b
			}
			if b.Language != "sh" {
				continue
			}
			t.Run(b.String(), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
				defer cancel()
				directory, script := "..", b.Text
				if ofProgram.MatchString(script) {
					directory, script = inModule(t, program, script)
				}
				command := exec.CommandContext(ctx, "sh", "-eu", "-c", script)
				// The sums of the modules are in go.sum of this module: no server needs to be asked.
				command.Dir, command.Env = directory, environment("TMPDIR="+t.TempDir(), "GOSUMDB=off")
				said, err := command.CombinedOutput()
				require.NoError(t, err, "%s\n%s", script, said)
			})
		}
	}
}

// ofProgram matches commands for the directory of a program.
var ofProgram = regexp.MustCompile(`(?m)^go mod init |\bgo run \.$`)

// inModule returns a new directory with a program, and the script that makes its module, if it has no such commands, and then runs
// the commands.
func inModule(t *testing.T, program doctest.Block, commands string) (directory, script string) {
	t.Helper()
	clone, err := filepath.Abs("..")
	require.NoError(t, err)
	directory = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(directory, "main.go"), []byte(program.Text), 0o600))
	if !strings.HasPrefix(commands, "go mod init ") {
		commands = "go mod init program\ngo mod edit -replace " + module + "=CLONE\ngo mod tidy\n" + commands
	}
	return directory, strings.ReplaceAll(commands, "CLONE", "'"+clone+"'")
}

var (
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	code = regexp.MustCompile("`[^`\n]*`")
)

var (
	dotted   = regexp.MustCompile(`(?:^|[^\w.])(\w+)\.([A-Z]\w*)`)
	recorded = regexp.MustCompile(`(?m)^(?:const|var|func|type|method) (\w+)(?:\.(\w+)|.* has (\w+))?`)
	// inCall is the call of a rank as the library logs it: a method with the name of its package.
	inCall = regexp.MustCompile(`\bin \w+\.[A-Z]\w*`)
	// variables are names under which the documents have values, with the types of these.
	variables = map[string]string{
		"win": "window.Window", "request": "window.Request", "server": "window.Server",
		"w": "world.World", "session": "world.World", "listener": "world.Listener", "table": "hashtable.Table",
	}
)

// Every name of a public package and every method of its values that code of the documents has is in testdata/api, which TestAPI
// compares with the packages.
func TestNames(t *testing.T) {
	known := recordedNames(t)
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		codes := map[string]string{} // by where it is
		for i, line := range slices.Collect(strings.Lines(string(text))) {
			codes[fmt.Sprintf("%s:%d", file, i+1)] = strings.Join(code.FindAllString(line, -1), " ")
		}
		for _, b := range doctest.Blocks(t, file) {
			for i := range strings.Count(b.Text, "\n") {
				delete(codes, fmt.Sprintf("%s:%d", file, b.Line+i))
			}
			if b.Language == "go" {
				codes[b.String()] = b.Text
			}
		}
		for where, text := range codes {
			for _, found := range dotted.FindAllStringSubmatch(inCall.ReplaceAllString(text, ""), -1) {
				of, name := found[1], found[2]
				if owner, ok := variables[of]; ok {
					of = owner
				}
				if names, ok := known[of]; ok && !slices.Contains(names, name) {
					t.Errorf("%s: %s.%s: %s has no %s", where, found[1], name, of, name)
				}
			}
		}
	}
}

// recordedNames returns what testdata/api has: the names of each package by its name, and the methods and fields of each type by
// the names of the package and the type.
func recordedNames(t *testing.T) map[string][]string {
	t.Helper()
	known := map[string][]string{}
	require.NoError(t, filepath.WalkDir(apiDirectory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		of := strings.TrimSuffix(entry.Name(), ".txt")
		for _, found := range recorded.FindAllStringSubmatch(string(text), -1) {
			of, name := of, found[1]
			if member := found[2] + found[3]; member != "" {
				of, name = of+"."+name, member
			}
			known[of] = append(known[of], name)
		}
		return err
	}))
	require.Greater(t, len(known["window"]), 50)
	require.Greater(t, len(known["window.Window"]), 30)
	return known
}

// Every link to a file or a heading of this module leads somewhere.
func TestLinks(t *testing.T) {
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range link.FindAllStringSubmatch(code.ReplaceAllString(string(text), ""), -1) {
			to, heading, _ := strings.Cut(found[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			target := file
			if to != "" {
				target = filepath.Join(filepath.Dir(file), to)
			}
			if _, err := os.Stat(target); err != nil {
				require.ErrorIs(t, err, fs.ErrNotExist)
				t.Errorf("%s: there is no %s", file, found[1])
				continue
			}
			if heading != "" && !slices.Contains(headings(t, target), heading) {
				t.Errorf("%s: %s has no heading #%s", file, target, heading)
			}
		}
	}
}

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// headings returns the anchors of a document.
func headings(t *testing.T, file string) (anchors []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if title := strings.TrimLeft(line, "#"); title != line {
			anchors = append(anchors, strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-"))
		}
	}
	return anchors
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A soaked tree is a repository with the script .ci/soak, for which a program that does nothing is the go command.
type soaked struct {
	t   *testing.T
	dir string
}

func newSoaked(t *testing.T) soaked {
	t.Helper()
	for _, program := range []string{"bash", "git", "awk", "sha256sum"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("skipped: .ci/soak needs %s, which is not installed", program)
		}
	}
	s := soaked{t, t.TempDir()}
	text, err := os.ReadFile("../../../.ci/soak")
	require.NoError(t, err)
	s.write(".ci/soak", string(text))
	s.write(".ci/soak.log", "")
	s.write("docs/page.md", "one\n")
	bin := t.TempDir()
	// A process that another test starts meanwhile would have the file open for writing: it could not be run.
	syscall.ForkLock.RLock()
	err = os.WriteFile(filepath.Join(bin, "go"), []byte("#!/bin/sh\nexit 0\n"), 0o755)
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	s.run("git", "init", "--quiet")
	s.commit()
	return s
}

func (s soaked) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o644))
}

func (s soaked) run(command ...string) {
	s.t.Helper()
	c := exec.CommandContext(s.t.Context(), command[0], command[1:]...)
	c.Dir = s.dir
	output, err := c.CombinedOutput()
	require.NoError(s.t, err, "%s: %s", command, output)
}

func (s soaked) commit() {
	s.t.Helper()
	s.run("git", "add", "-A")
	s.run("git", "-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "commit", "--quiet", "-m", "x")
}

// soak runs the script and returns the lines that it adds to the log, each with the code and the load.
func (s soaked) soak(arguments ...string) (runs [][2]string) {
	s.t.Helper()
	before := s.log()
	s.run(append([]string{"bash", ".ci/soak"}, arguments...)...)
	for line := range strings.Lines(strings.TrimPrefix(s.log(), before)) {
		fields := strings.Fields(line)
		require.GreaterOrEqual(s.t, len(fields), 7, line)
		require.Equal(s.t, "ok", fields[5])
		runs = append(runs, [2]string{fields[2], fields[3]})
	}
	return runs
}

func (s soaked) log() string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, ".ci", "soak.log"))
	require.NoError(s.t, err)
	return string(text)
}

// Every tenth loaded run of the same code has builds beside it, whichever call of the script runs it.
func TestSoakBuilds(t *testing.T) {
	s := newSoaked(t)
	code := s.soak()[0][0]
	var earlier strings.Builder
	for _, run := range slices.Concat(
		slices.Repeat([]string{code + " load"}, 7), slices.Repeat([]string{code + " quiet"}, 3), slices.Repeat([]string{"other load"}, 4),
	) {
		fmt.Fprintf(&earlier, "2026-01-01T00:00:00Z abc %s 1 ok 100\n", run)
	}
	s.write(".ci/soak.log", earlier.String())
	require.Equal(t, [][2]string{{code, "load"}, {code, "load"}}, s.soak("-load", "-runs", "2"))
	require.Equal(t, [][2]string{{code, "quiet"}}, s.soak())
	require.Equal(t, [][2]string{{code, "builds"}, {code, "load"}}, s.soak("-load", "-runs", "2"))
}

// Runs before and after a change of a document do not add up, because tests read documents. A change of the log is none.
func TestSoakHash(t *testing.T) {
	s := newSoaked(t)
	first := s.soak()
	s.commit()
	require.Equal(t, first, s.soak())
	s.write("docs/page.md", "another\n")
	s.commit()
	require.NotEqual(t, first, s.soak())
}

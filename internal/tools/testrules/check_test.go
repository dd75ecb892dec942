package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// breachesOf checks a file of a package that has some constants.
func breachesOf(t *testing.T, name, body string) string {
	t.Helper()
	root := t.TempDir()
	path := filepath.Join(root, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte("package p\n\nfunc f() {\n"+body+"\n}\n"), 0o644))
	constants := "package p\n\nconst limit = 2 * pause\nconst pause = 10 * time.Second\nconst own = own\n"
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "constants.go"), []byte(constants), 0o644))
	var out strings.Builder
	n, err := run(&out, root)
	require.NoError(t, err)
	require.Equal(t, n, strings.Count(out.String(), "\n"))
	return strings.ReplaceAll(out.String(), root+"/", "")
}

func TestCheck(t *testing.T) {
	for _, c := range []struct{ name, file, body, want string }{
		{"sleep", "p/a_test.go", "time.Sleep(time.Second)", "p/a_test.go:4: time.Sleep: wait for a state, by package await\n"},
		{"computes", "p/a_test.go", "time.Sleep(time.Second) // computes", ""},
		{"not a test", "p/a.go", "time.Sleep(time.Second)", ""},
		{"test package", "ptest/a.go", "<-time.After(1)", "ptest/a.go:4: time.After: wait for a state, by package await\n"},
		{"await", "await/a_test.go", "time.Sleep(time.Second)", ""},
		{"testdata", "testdata/a_test.go", "time.Sleep(time.Second)", ""},
		{"limit", "p/a_test.go", "context.WithTimeout(c, 20*time.Second)", "p/a_test.go:4: context.WithTimeout: a limit of 20s ends a slow run; it must be 1m0s or more\n"},
		{"long limit", "p/a_test.go", "context.WithTimeout(c, time.Minute)", ""},
		{"constant", "p/a_test.go", "context.WithTimeoutCause(c, limit, nil)", "p/a_test.go:4: context.WithTimeoutCause: a limit of 20s ends a slow run; it must be 1m0s or more\n"},
		{"long constant", "p/a_test.go", "context.WithTimeout(c, (limit+pause)*2)", ""},
		{"expires", "p/a_test.go", "context.WithTimeout(c, pause) // expires", ""},
		{"unknown", "p/a_test.go", "context.WithTimeout(c, own)", ""},
		{"not a constant", "p/a_test.go", "context.WithTimeout(c, rest())", ""},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, breachesOf(t, c.file, c.body)) })
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

// A recorder takes what ranks print, and calls onWrite, if set, at each write.
type recorder struct {
	mu      sync.Mutex
	text    bytes.Buffer
	onWrite func(text string)
}

func (r *recorder) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.onWrite != nil {
		r.onWrite(string(text))
	}
	return r.text.Write(text)
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// tree writes files under a new directory and returns it. A name that ends with / is
// a directory.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	top := t.TempDir()
	for name, text := range files {
		path := filepath.Join(top, name)
		directory := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			directory = path
		}
		if err := os.MkdirAll(directory, 0o777); err != nil {
			t.Fatal(err)
		}
		if directory == path {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// randomFiles returns n files of words in nested directories. Some words are frequent.
func randomFiles(n int, random *rand.Rand) map[string]string {
	files := map[string]string{}
	for i := range n {
		var text strings.Builder
		for range random.IntN(2000) {
			fmt.Fprintf(&text, "%s%d%s", []string{"wort", "λόγος", "言葉", "x"}[random.IntN(4)], int(1/(random.Float64()+1e-4)), []string{" ", "\n", ".", "\xff"}[random.IntN(4)])
		}
		files[fmt.Sprintf("%d/%d/%d.txt", i%3, i%7, i)] = text.String()
	}
	return files
}

// run runs the command in this process.
func run(t *testing.T, arguments ...string) (status int, out, errout string) {
	t.Helper()
	var o, e recorder
	status = command(t.Context(), arguments, &o, &e, false)
	return status, o.String(), e.String()
}

// succeeds runs the command and returns what it prints.
func succeeds(t *testing.T, arguments ...string) (out, errout string) {
	t.Helper()
	status, out, errout := run(t, arguments...)
	if status != 0 {
		t.Fatalf("status of %q is %d, errors are:\n%s", arguments, status, errout)
	}
	return out, errout
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

func TestRanksAgree(t *testing.T) {
	random := testsize.Random(t, 12)
	files := randomFiles(150, random)
	files["binary"] = "\x7fELF\x00 word word"
	files["late NUL"] = strings.Repeat("word ", sniffBytes) + "\x00 word"
	files["long"] = strings.Repeat("x", 5*longestWord) + " end"
	files["empty"] = ""
	files["no directory/"] = ""
	files["one\nline\x1b[31m.txt"] = "name"
	top := tree(t, files)
	one, _ := succeeds(t, "-top", "50", "-verify", top)
	contains(t, one, "1 binary file,", "1 word of more than", "verified: ", "154 files")
	for _, ranks := range []string{"1", "2", "4", "9"} {
		t.Run(ranks+" ranks", func(t *testing.T) {
			out, errout := succeeds(t, "-top", "50", "-verify", "-ranks", ranks, top)
			if out != one {
				t.Errorf("output is\n%s\nwant that of one rank:\n%s", out, one)
			}
			contains(t, errout, "with "+ranks+" rank", "by the plain count")
		})
	}
}

// A file that is cut into pieces gives the same counts as an uncut one.
func TestLargeFile(t *testing.T) {
	line := "zwölf Boxkämpfer jagen 数 Viktor quer über_den großen Deich\n"
	n := 2*pieceBytes/len(line) + 4_000
	long := strings.Repeat("y", pieceBytes/4)
	top := tree(t, map[string]string{
		"large": strings.Repeat(line, n) + long, "small": "Deich",
		"large binary": "\x00" + strings.Repeat("x ", pieceBytes+1),
	})
	for _, ranks := range []string{"3", "1"}[:min(2, testsize.N(1))] {
		out, _ := succeeds(t, "-verify", "-ranks", ranks, top)
		contains(t, out, fmt.Sprintf("%d  11.11%%  Deich", n+1), "\n       2 files\n", "1 binary file,", "1 word of more than")
		if t.Failed() {
			t.Log(out)
		}
	}
}

func TestOrder(t *testing.T) {
	top := tree(t, map[string]string{"a": "b a c b a c d ", "b": "d d d d"})
	out, _ := succeeds(t, "-top", "3", top)
	want := `count   share  word
    5  45.45%  d
    2  18.18%  a
    2  18.18%  b

 2 files
21 bytes
11 words
 4 different words
`
	if out != want {
		t.Errorf("output is\n%s\nwant\n%s", out, want)
	}
}

func TestNothingToCount(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no file": {"d/": ""}, "empty files": {"a": "", "b": ""}, "no words": {"a": "- -"}, "binary": {"a": "\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, ranks := range []string{"1", "3"} {
				out, _ := succeeds(t, "-verify", "-ranks", ranks, tree(t, files))
				contains(t, out, "0 words\n", "verified: ")
			}
		})
	}
}

// A loop of symbolic links ends. Links are followed only if they are a PATH.
func TestLinks(t *testing.T) {
	top := tree(t, map[string]string{"d/a": "one two"})
	for link, to := range map[string]string{"d/up": "..", "d/self": "self", "d/again": "a", "start": "d"} {
		if err := os.Symlink(to, filepath.Join(top, link)); err != nil {
			t.Skipf("skipped: the file system of temporary directories has no symbolic links: %v", err)
		}
	}
	out, _ := succeeds(t, top)
	contains(t, out, "\n1 file\n", "\n4 links, devices")
	out, _ = succeeds(t, filepath.Join(top, "start"), filepath.Join(top, "d/again"))
	contains(t, out, " 2 files", " 4 words", " 2 different words")
}

func TestWrongUsage(t *testing.T) {
	for _, c := range []struct {
		arguments []string
		want      string
	}{
		{nil, "no PATH"},
		{[]string{"-top", "-1", "."}, "must be a number from 0 to"},
		{[]string{"-top", "many", "."}, "must be a number from 0 to"},
		{[]string{"-ranks", "0", "."}, "must be a number from 1 to 4096"},
		{[]string{"-distinct", "0", "."}, "must be a number from 1 to"},
		{[]string{"-unknown", "."}, "-unknown"},
	} {
		status, out, errout := run(t, c.arguments...)
		if status != 2 || out != "" {
			t.Errorf("%q: status %d and output %q, want 2 and nothing", c.arguments, status, out)
		}
		contains(t, errout, c.want, "wordcount -h")
	}
	out, errout := succeeds(t, "-h")
	contains(t, out, "usage:", "A word is", "-verify", "-distinct", "exit status")
	if errout != "" {
		t.Errorf("-h prints errors: %s", errout)
	}
}

func TestFailures(t *testing.T) {
	random := testsize.Random(t, 14)
	top := tree(t, randomFiles(40, random))
	var words strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&words, "w%d ", i)
	}
	many := tree(t, map[string]string{"many": words.String()})
	for _, c := range []struct {
		name      string
		arguments []string
		want      []string
	}{
		{"missing path", []string{top, top + "/missing"}, []string{"/missing", "no such file"}},
		{"table full", []string{"-distinct", "10", many}, []string{"than the table was made for, 10;", "-distinct", "full"}},
		{"table too large", []string{"-distinct", "1000000000000", many}, []string{"-distinct", "not enough memory"}},
	} {
		for _, ranks := range []string{"1", "4"} {
			t.Run(c.name+", ranks "+ranks, func(t *testing.T) {
				status, out, errout := run(t, append([]string{"-verify", "-ranks", ranks}, c.arguments...)...)
				if status != 1 || out != "" {
					t.Errorf("status %d and output %q, want 1 and nothing", status, out)
				}
				contains(t, errout, c.want...)
				if n := strings.Count(errout, "\n"); n != 1 {
					t.Errorf("%d lines of errors, want the first rank's only:\n%s", n, errout)
				}
			})
		}
	}
}

var errBroken = errors.New("broken pipe")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// If the result cannot be printed, all ranks end.
func TestOutputFails(t *testing.T) {
	var errout recorder
	if status := command(t.Context(), []string{"-ranks", "3", "-verify", tree(t, map[string]string{"a": "a"})}, broken{}, &errout, false); status != 1 {
		t.Errorf("status is %d, want 1", status)
	}
	contains(t, errout.String(), "rank 0: broken pipe")
}

// A file that cannot be read is named and counted in the totals, and does not end the job.
func TestUnreadable(t *testing.T) {
	top := tree(t, map[string]string{"good": "one two", "bad": "three", "closed/file": "four"})
	for _, name := range []string{"bad", "closed"} {
		path := filepath.Join(top, name)
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o777) })
	}
	if f, err := os.Open(filepath.Join(top, "bad")); err == nil {
		f.Close()
		t.Skip("skipped: permissions keep root from nothing; .ci/run has a user without rights run this")
	}
	out, errout := succeeds(t, "-verify", "-ranks", "2", top)
	contains(t, errout, filepath.Join(top, "bad"), filepath.Join(top, "closed"), "permission denied")
	contains(t, out, "2 files and directories not readable", "verified: ")
}

// prepared runs a job of three ranks, of which rank 0 calls change when the files are listed.
func prepared(t *testing.T, o *options, change func() error) (out, errout string, err error) {
	t.Helper()
	var to, errto recorder
	err = world.Run(t.Context(), 3, func(ctx context.Context, w *world.World) error {
		r := newRank(&job{options: o, out: &to, errout: &errto}, w)
		s, err := r.prepare(ctx)
		if err == nil && w.Rank() == 0 {
			err = change()
		}
		if err = agree(ctx, w, err); err != nil {
			return err
		}
		return r.carryOut(ctx, s)
	})
	return to.String(), errto.String(), err
}

// Files change after they are listed and before they are counted.
func TestFilesChange(t *testing.T) {
	large := strings.Repeat("many words ", pieceBytes/5)
	top := tree(t, map[string]string{"gone": "gone", "grows": "first", "shrinks": "one two three", "becomes a directory": "x", "large": large})
	at := func(name string) string { return filepath.Join(top, name) }
	out, errout, err := prepared(t, &options{paths: []string{top}, top: 9, verify: true}, func() error {
		return errors.Join(
			os.Remove(at("gone")), os.Remove(at("becomes a directory")), os.Mkdir(at("becomes a directory"), 0o777),
			os.WriteFile(at("grows"), []byte("firsthand and more"), 0o666), os.Truncate(at("shrinks"), 4),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	contains(t, errout, at("gone"), "no such file", at("becomes a directory")+": is a directory", at("shrinks")+": has become shorter, from 13 bytes to 4")
	contains(t, out, " 3 files\n", " 2 files and directories not readable", " 1 file that became shorter", "  first\n", "  one\n", "verified: ")
}

// Every piece of a file that was cut contains the file's size, so a shorter file is noticed.
func TestLargeFileGoes(t *testing.T) {
	top := tree(t, map[string]string{"large": strings.Repeat("many words ", pieceBytes/5)})
	path := filepath.Join(top, "large")
	out, errout, err := prepared(t, &options{paths: []string{top}}, func() error { return os.Truncate(path, 20) })
	if err != nil {
		t.Fatal(err)
	}
	contains(t, errout, path+": has become shorter")
	contains(t, out, "\n20 bytes\n", " 4 words\n")
}

// ownSource returns a directory of this module, as a text that is always available. Larger runs take a larger
// directory.
func ownSource() string {
	if testsize.N(1) > 1 {
		return "../../verbs"
	}
	return "../../verbs/shm"
}

// whole runs the job on goroutines and processes. Rank 0 prints what a job of one rank prints.
var whole = jobtest.Register("whole", func(ctx context.Context, w *world.World) error {
	arguments := &options{paths: []string{ownSource()}, top: 10, verify: true}
	var out, errout recorder
	if err := (&job{options: arguments, out: &out, errout: &errout}).run(ctx, w); err != nil {
		return fmt.Errorf("%w\n%s", err, errout.String())
	}
	if w.Rank() != 0 {
		if out.String() != "" {
			return fmt.Errorf("rank %d prints %q", w.Rank(), out.String())
		}
		return nil
	}
	var one recorder
	err := world.Run(ctx, 1, (&job{options: arguments, out: &one, errout: io.Discard}).run)
	if err == nil && out.String() != one.String() {
		err = fmt.Errorf("output is\n%s\nwant\n%s", out.String(), one.String())
	}
	return err
})

func TestJob(t *testing.T) {
	t.Parallel()
	jobtest.InTurns(t, 0, whole, 1, 2, 4)
}

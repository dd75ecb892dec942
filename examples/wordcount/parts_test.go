package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/onesided/rma/examples/hashtable"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

// A plan has every byte of every file in one piece, and the largest files first. No task has too many files or several
// large ones.
func TestSplit(t *testing.T) {
	large := strings.Repeat("x ", pieceBytes+1)
	top := tree(t, map[string]string{"large": large, "large too": large + "more", "binary": large + "\x00", "large binary": "\x00" + large})
	var files []file
	for _, name := range []string{"large", "large too", "large binary", "gone"} {
		size := int64(len(large)) + 1
		if info, err := os.Stat(filepath.Join(top, name)); err == nil {
			size = info.Size()
		}
		files = append(files, file{filepath.Join(top, name), size})
	}
	random := testsize.Random(t, 18)
	for i := range 1000 {
		files = append(files, file{fmt.Sprint(i), random.Int64N(1 << random.IntN(25))})
	}
	var problems []error
	p, err := split(t.Context(), files, func(err error) { problems = append(problems, err) })
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) != 1 || !errors.Is(problems[0], os.ErrNotExist) || p.found != (totals{Files: 2, Binary: 1, Unreadable: 1}) {
		t.Errorf("problems are %v and totals %+v, want one file that is gone, one binary, and two counted", problems, p.found)
	}
	next, last := map[string]int64{}, int64(1<<62)
	for _, task := range p.tasks {
		if len(task) > taskFiles {
			t.Errorf("a task has %d files, at most %d are allowed", len(task), taskFiles)
		}
		size := int64(0)
		for i, piece := range task {
			if from, known := next[piece.path]; piece.from != from || known && from == piece.size {
				t.Errorf("%s goes on at %d, want %d", piece.path, piece.from, from)
			}
			next[piece.path] = piece.to
			if piece.size > last {
				t.Errorf("%s of %d bytes comes after a file of %d", piece.path, piece.size, last)
			}
			last = piece.size
			if size >= taskBytes {
				t.Errorf("a task of %d bytes has piece %d", size, i)
			}
			size += piece.to - piece.from
		}
		if size > 2*pieceBytes {
			t.Errorf("a task has %d bytes", size)
		}
		if got, err := decodeTask(encodeTask(nil, task)); err != nil || !slices.Equal(got, task) {
			t.Errorf("task is decoded as %v, %v, want %v", got, err, task)
		}
	}
	for _, f := range files {
		if to, known := next[f.path]; known != (!strings.HasSuffix(f.path, "large binary") && !strings.HasSuffix(f.path, "gone")) || known && to != f.size {
			t.Errorf("%s is in pieces up to %d, want %d", f.path, to, f.size)
		}
	}
}

// The same files give the same plan.
func TestSplitIsDeterministic(t *testing.T) {
	var files []file
	for i := range 500 {
		files = append(files, file{fmt.Sprint(i), int64(i * 7919 % 100)})
	}
	first, err := split(t.Context(), files, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := split(t.Context(), files, nil)
	if err != nil || !reflect.DeepEqual(first, again) {
		t.Errorf("plans differ (error %v)", err)
	}
}

func TestDamagedTask(t *testing.T) {
	whole := encodeTask(nil, []piece{{file{"name", 300}, 0, 300}})
	for n := 1; n < len(whole); n++ {
		if task, err := decodeTask(whole[:n]); !errors.Is(err, errTask) {
			t.Errorf("%d of %d bytes are decoded as %v, %v, want an error", n, len(whole), task, err)
		}
	}
}

// Every task is taken once, by some rank, until stop.
func TestBoard(t *testing.T) {
	const tasks, ranks = 500, 4
	plan := make([][]piece, tasks)
	for i := range plan {
		for range i%3 + 1 {
			plan[i] = append(plan[i], piece{file{strings.Repeat("näme", i%50) + fmt.Sprint(i), int64(i)}, 0, int64(i)})
		}
	}
	for _, stopAfter := range []int{tasks, tasks / 2} {
		taken := make([][]int64, ranks)
		err := world.Run(t.Context(), ranks, func(ctx context.Context, w *world.World) error {
			mine := plan
			if w.Rank() != 0 {
				mine = nil
			}
			b, err := newJobWindow(ctx, w, mine, tasks)
			if err != nil {
				return err
			}
			for {
				task, err := b.take(ctx)
				if err != nil {
					return err
				}
				if len(task) == 0 {
					break
				}
				number := task[0].size
				if !slices.Equal(task, plan[number]) {
					return fmt.Errorf("task %d is %v, want %v", number, task, plan[number])
				}
				taken[w.Rank()] = append(taken[w.Rank()], number)
				if err := b.advance(ctx, 1, 2, 3); err != nil {
					return err
				}
				if len(taken[w.Rank()]) == stopAfter/ranks && stopAfter < tasks {
					if err := b.stop(ctx); err != nil {
						return err
					}
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			files, bytes, words, err := b.progress(ctx)
			all := uint64(len(slices.Concat(taken...)))
			if err == nil && (files != all || bytes != 2*all || words != 3*all) {
				err = fmt.Errorf("progress is %d, %d, %d after %d tasks", files, bytes, words, all)
			}
			return errors.Join(err, b.close(ctx))
		})
		if err != nil {
			t.Fatal(err)
		}
		all := slices.Sorted(slices.Values(slices.Concat(taken...)))
		for i, number := range all {
			if number != int64(i) {
				t.Fatalf("task %d is taken twice or not at all: %v", i, all)
			}
		}
		if stopAfter == tasks && len(all) != tasks || stopAfter < tasks && len(all) == tasks {
			t.Errorf("%d of %d tasks are taken, stop came after %d", len(all), tasks, stopAfter)
		}
	}
}

// If any rank passes an error, all ranks get one, and one of them gets the reason. A second agree gives the same
// result.
func TestAgree(t *testing.T) {
	why := errors.New("reason")
	for failing := range 8 {
		err := world.Run(t.Context(), 3, func(ctx context.Context, w *world.World) error {
			var mine error
			if failing>>w.Rank()&1 != 0 {
				mine = why
			}
			err := agree(ctx, w, mine)
			again := agree(ctx, w, err)
			reasons := make([]int64, 1)
			one := []int64{0}
			if errors.Is(again, why) {
				one[0] = 1
			}
			if e := world.AllReduce(ctx, w, one, reasons, func(a, b int64) int64 { return a + b }); e != nil {
				return e
			}
			if failing == 0 && (err != nil || again != nil) || failing != 0 && (err == nil || again == nil || reasons[0] != 1) {
				return fmt.Errorf("errors are %v and %v, %d reasons", err, again, reasons[0])
			}
			return nil
		})
		if err != nil {
			t.Errorf("failing ranks %03b: %v", failing, err)
		}
	}
}

// first keeps the beginning of the sorted list.
func TestFirst(t *testing.T) {
	random := testsize.Random(t, 20)
	for n := range 30 {
		f := &first{n: n}
		var all []wordCount
		for i := range 200 {
			w := wordCount{fmt.Sprint(i), random.Uint64N(20)}
			all = append(all, w)
			f.offer(w)
		}
		slices.SortFunc(all, before)
		if got := f.trim(); !slices.Equal(got, all[:n]) {
			t.Errorf("first %d are %v, want %v", n, got, all[:n])
		}
	}
}

// compare finds every kind of difference: a wrong count, a missing word, an extra word, a wrong total.
func TestCompareFindsDifferences(t *testing.T) {
	const ranks = 3
	text := strings.Fields(strings.Repeat("a b c d e f g h ", 5))
	for _, c := range []struct {
		name   string
		spoil  func(ctx context.Context, table *hashtable.Table) error
		totals totals
		want   string
	}{
		{"nothing", func(context.Context, *hashtable.Table) error { return nil }, totals{}, ""},
		{"count", func(ctx context.Context, table *hashtable.Table) error {
			_, err := table.Add(ctx, "c", 1)
			return err
		}, totals{}, "c: 6 in the table, 5 by the plain count"},
		{"missing", func(ctx context.Context, table *hashtable.Table) error {
			_, err := table.Delete(ctx, "d")
			return err
		}, totals{}, "d: 0 in the table, 5 by the plain count"},
		{"too many", func(ctx context.Context, table *hashtable.Table) error {
			_, err := table.Add(ctx, "x", 7)
			return err
		}, totals{}, "x: 7 in the table, 0 by the plain count"},
		{"total", func(context.Context, *hashtable.Table) error { return nil }, totals{Files: 1}, "totals: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := world.Run(t.Context(), ranks, func(ctx context.Context, w *world.World) error {
				table, err := hashtable.New(ctx, w, sizes(100, ranks))
				if err != nil {
					return err
				}
				for i, word := range text {
					if i%ranks == w.Rank() {
						if _, err := table.Add(ctx, word, 1); err != nil {
							return err
						}
					}
				}
				p := &plain{words: map[string]uint64{}}
				for _, word := range text {
					p.words[word]++
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				if w.Rank() == 1 {
					err = c.spoil(ctx, table)
				}
				if err := errors.Join(err, w.Barrier(ctx)); err != nil {
					return err
				}
				err = compare(ctx, w, table, c.totals, p)
				switch {
				case w.Rank() == 0 && c.want != "" && errors.Is(err, errDifferent) && strings.Contains(err.Error(), c.want):
					err = nil
				case err == nil && w.Rank() == 0 && c.want != "":
					err = errors.New("no difference is found")
				}
				return errors.Join(err, table.Close())
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// On a terminal progress is one line that is rewritten, and other lines erase it.
func TestDisplay(t *testing.T) {
	for _, c := range []struct {
		name            string
		terminal, lines bool
		want            string
	}{
		{"terminal", true, false, eraseLine + "1 of 2" + eraseLine + "a file\n" + eraseLine + "2 of 2" + eraseLine},
		{"lines", false, true, "1 of 2\na file\n2 of 2\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var to strings.Builder
			d := newDisplay(&to, c.terminal, c.lines)
			d.update("1 of 2")
			d.line("a %s", "file")
			d.update("2 of 2")
			d.clear()
			d.clear()
			if to.String() != c.want {
				t.Errorf("written is %q, want %q", to.String(), c.want)
			}
		})
	}
}

// follow shows states until stop or an error, and does nothing if progress is not shown.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var to strings.Builder
		called := make(chan struct{})
		n := 0
		stop := newDisplay(&to, true, false).follow(func() (string, error) {
			if n++; n == 1 {
				return "state", nil
			}
			close(called)
			return "", errors.New("lost")
		})
		<-called
		stop()
		if want := eraseLine + "state" + eraseLine; to.String() != want {
			t.Errorf("written is %q, want %q", to.String(), want)
		}
		newDisplay(&to, false, false).follow(func() (string, error) { panic("nobody looks") })()
	})
}

func TestDigits(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 3 << 30: "3.0 GiB", 1<<64 - 1: "16.0 EiB"} {
		if got := size(n); got != want {
			t.Errorf("size of %d is %q, want %q", n, got, want)
		}
	}
}

// The table has the requested room, in all ranks together.
func TestSizes(t *testing.T) {
	for _, n := range []int{1, 3, 64} {
		for _, distinct := range []int{1, 1000, 5_000_000} {
			c := sizes(distinct, n)
			if c.Slots*n < 2*distinct || c.RecordBytes*n < distinct*hashtable.CounterBytes(usualWord) {
				t.Errorf("%d words in %d ranks: %+v is too small", distinct, n, c)
			}
		}
	}
	for _, bytes := range []int64{0, 1, 1000, 1 << 40} {
		if got := estimate(bytes); got < 1 || int64(got) > bytes/2+1 {
			t.Errorf("%d bytes have at least one and at most %d words, the estimate is %d", bytes, bytes/2+1, got)
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/onesided/rma/examples/hashtable"
	"github.com/onesided/rma/world"
)

// A job is what the command line asks for. Every rank runs it.
type job struct {
	*options
	// out receives the words and totals from rank 0. errout receives problems from each rank, a line at a time, and
	// times and progress.
	out, errout io.Writer
	// terminal is set if errout is a terminal.
	terminal bool
}

// A rank is one rank's part of a job.
type rank struct {
	*job
	w     *world.World
	show  *display
	began time.Time
	// listing and plan are set on rank 0 only.
	listing *listing
	plan    *plan
	// room is the number of different words for which the table is made.
	room      int
	table     *hashtable.Table
	jobWindow *jobWindow
}

// A start is what rank 0 sends to the other ranks before they begin.
type start struct {
	// Bytes is the number of bytes of all Tasks.
	Tasks, Bytes int64
}

// run runs the job on one rank. It prints an error and returns it.
func (j *job) run(ctx context.Context, w *world.World) error {
	r := newRank(j, w)
	return r.report(ctx, r.run(ctx))
}

func newRank(j *job, w *world.World) *rank {
	return &rank{job: j, w: w, began: time.Now(), show: newDisplay(j.errout, j.terminal, j.progress && !j.terminal)}
}

// report prints the error that ended this rank, if any, unless another rank prints it.
func (r *rank) report(ctx context.Context, err error) error {
	switch {
	case err == nil, errors.Is(err, errElsewhere):
	case ctx.Err() != nil:
		if r.w.Rank() == 0 {
			r.show.line("wordcount: ended before everything was counted: %v", context.Cause(ctx))
		}
	case errors.Is(err, hashtable.ErrFull):
		r.problem(fmt.Errorf("there are more different words than the table was made for, %d; choose how many with -distinct: %w", r.room, err))
	default:
		r.problem(err)
	}
	return err
}

// problem prints a problem of this rank.
func (r *rank) problem(err error) {
	if r.w.Size() == 1 {
		r.show.line("wordcount: %v", err)
		return
	}
	r.show.line("wordcount: rank %d: %v", r.w.Rank(), err)
}

// run runs the steps of the job. An error of one rank ends the same step on all ranks.
func (r *rank) run(ctx context.Context) error {
	s, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	return r.carryOut(ctx, s)
}

// carryOut counts what has been prepared, prints the result, and verifies it.
func (r *rank) carryOut(ctx context.Context, s start) error {
	if err := r.open(ctx, s); err != nil {
		return err
	}
	err := r.evaluate(ctx, s)
	// If a rank has failed or will not arrive, the collective Close is skipped. The other ranks notice the end of the
	// process.
	if agreed := agree(ctx, r.w, err); agreed != nil {
		err = agreed
		if r.cannotContinue(ctx) {
			return err
		}
	}
	return errors.Join(err, r.table.Close(), r.jobWindow.close(ctx))
}

// cannotContinue reports whether this rank cannot rely on further collective calls.
func (r *rank) cannotContinue(ctx context.Context) bool {
	return ctx.Err() != nil || len(r.w.Failures()) > 0
}

// prepare lists and splits the files on rank 0.
func (r *rank) prepare(ctx context.Context) (start, error) {
	var err error
	s := make([]start, 1)
	if r.w.Rank() == 0 {
		if r.listing, err = list(ctx, r.paths, r.problem); err == nil {
			r.plan, err = split(ctx, r.listing.files, r.problem)
		}
		if err == nil {
			s[0] = start{int64(len(r.plan.tasks)), r.plan.bytes()}
		}
	}
	if err := agree(ctx, r.w, err); err != nil {
		return start{}, err
	}
	err = world.Broadcast(ctx, r.w, 0, s)
	return s[0], err
}

// open makes the windows that the ranks share.
func (r *rank) open(ctx context.Context, s start) error {
	if r.room = r.distinct; r.room == 0 {
		r.room = estimate(s.Bytes)
	}
	var tasks [][]piece
	if r.w.Rank() == 0 {
		tasks = r.plan.tasks
	}
	var err error
	if r.table, err = hashtable.New(ctx, r.w, sizes(r.room, r.w.Size())); err != nil {
		return fmt.Errorf("making a table for %d different words (-distinct): %w", r.room, r.once(err))
	}
	if r.jobWindow, err = newJobWindow(ctx, r.w, tasks, int(s.Tasks)); err != nil {
		return r.once(err)
	}
	return nil
}

// once makes only rank 0 print an error that every rank has.
func (r *rank) once(err error) error {
	if r.w.Rank() == 0 || len(r.w.Failures()) > 0 {
		return err
	}
	return fmt.Errorf("%w: %w", errElsewhere, err)
}

// evaluate counts, prints the result, and verifies it.
func (r *rank) evaluate(ctx context.Context, s start) error {
	mine, err := r.count(ctx, s)
	if err != nil {
		return err
	}
	top, distinct, sum := owned(r.table, r.top)
	mine.Distinct = distinct
	result := make([]totals, 1)
	if err := world.AllReduce(ctx, r.w, []totals{mine}, result, totals.plus); err != nil {
		return err
	}
	sums := make([]uint64, 1)
	if err := world.AllReduce(ctx, r.w, []uint64{sum}, sums, func(a, b uint64) uint64 { return a + b }); err != nil {
		return err
	}
	if sums[0] != result[0].Words {
		return r.once(fmt.Errorf("the ranks counted %d words, the table has %d", result[0].Words, sums[0]))
	}
	words, err := gatherWords(ctx, r.w, top)
	if r.w.Rank() == 0 && err == nil {
		r.show.clear()
		elapsed := time.Since(r.began)
		err = printResult(r.out, words[:min(r.top, len(words))], result[0], r.listing.other)
		r.show.line("%s, %s words/s with %d %s", round(elapsed), rate(result[0].Words, elapsed), r.w.Size(), plural(uint64(r.w.Size()), "rank", "ranks"))
	}
	if err := agree(ctx, r.w, err); err != nil || !r.verify {
		return err
	}
	return r.compare(ctx, result[0])
}

// count counts until no rank has tasks left. The words of all ranks are then in the table.
func (r *rank) count(ctx context.Context, s start) (totals, error) {
	stop := func() {}
	if r.w.Rank() == 0 {
		stop = r.show.follow(func() (string, error) { return r.state(ctx, s) })
	}
	defer stop()
	c := newCounter(ctx, r.table, r.problem)
	if r.w.Rank() == 0 {
		c.found = r.plan.found
		c.found.Unreadable += r.listing.unreadable
	}
	err := r.work(ctx, c)
	if err != nil && !r.cannotContinue(ctx) {
		err = errors.Join(err, r.jobWindow.stop(ctx))
	}
	return c.found, agree(ctx, r.w, err)
}

// work takes tasks and counts them.
func (r *rank) work(ctx context.Context, c *counter) error {
	for {
		task, err := r.jobWindow.take(ctx)
		if err != nil {
			return err
		}
		if len(task) == 0 {
			c.flush()
			return c.err
		}
		before := c.found.Words
		for _, p := range task {
			if err := c.count(p); err != nil {
				return err
			}
		}
		if err := r.jobWindow.advance(ctx, uint64(len(task)), uint64(taskSize(task)), c.found.Words-before); err != nil {
			return err
		}
	}
}

// state returns the progress of the job as text.
func (r *rank) state(ctx context.Context, s start) (string, error) {
	_, bytes, words, err := r.jobWindow.progress(ctx)
	if err != nil {
		return "", err
	}
	elapsed := time.Since(r.began)
	return fmt.Sprintf("%s of %s, %d words, %s words/s", size(bytes), size(uint64(s.Bytes)), words, rate(words, elapsed)), nil
}

// compare counts again on rank 0 and compares.
func (r *rank) compare(ctx context.Context, result totals) error {
	var p *plain
	var err error
	var elapsed time.Duration
	if r.w.Rank() == 0 {
		began := time.Now()
		p, err = countPlainly(ctx, r.listing)
		elapsed = time.Since(began)
	}
	if err := agree(ctx, r.w, err); err != nil {
		return err
	}
	if err := compare(ctx, r.w, r.table, result, p); err != nil || r.w.Rank() != 0 {
		return err
	}
	r.show.line("%s, %s words/s by the plain count in one process", round(elapsed), rate(p.found.Words, elapsed))
	_, err = fmt.Fprintf(r.out, "verified: a plain count finds the same %d %s, the same count of each, and the same totals\n", p.found.Distinct, plural(p.found.Distinct, "different word", "different words"))
	return err
}

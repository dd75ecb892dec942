package jobtest

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/onesided/rma/internal/await"
)

// await returns when ready does; changed signals when to check it again. It fails the test if the rank's process ends
// before. If it takes longer than any test does, all ranks print the stacks of their goroutines and end.
func (j *Job) await(what string, r *rank, ready func() bool) {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), hangLimit)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		for _, r := range j.ranks {
			r.quit()
		}
	})()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !ready() {
		if r.ended {
			j.t.Fatalf("jobtest: waiting for %s: the rank's process has ended: %v", what, r.err)
		}
		r.changed.Wait()
	}
}

// quit makes a process print the stacks of its goroutines and end, even if it is stopped.
func (r *rank) quit() {
	_ = r.cmd.Process.Signal(syscall.SIGQUIT)
	_ = r.cmd.Process.Signal(syscall.SIGCONT)
}

// Await returns when a rank has reached a point that its body signals.
func (j *Job) Await(rank int, point string) {
	j.t.Helper()
	r := j.ranks[rank]
	j.await(fmt.Sprintf("rank %d at %q", rank, point), r, func() bool { return r.points[point] })
}

// AwaitAll returns when every rank has reached a point that its body signals.
func (j *Job) AwaitAll(point string) {
	j.t.Helper()
	for rank := range j.ranks {
		j.Await(rank, point)
	}
}

// AwaitState returns when state returns true. It fails the test if the process of the rank ends before.
func (j *Job) AwaitState(rank int, what string, state func() bool) {
	j.t.Helper()
	r := j.ranks[rank]
	await.True(j.t, fmt.Sprintf("rank %d: %s", rank, what), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ended {
			j.t.Fatalf("jobtest: waiting for rank %d: %s: the rank's process has ended: %v", rank, what, r.err)
		}
		return state()
	})
}

// Release ends one Hold of a rank, a present or a future one.
func (j *Job) Release(rank int) {
	j.t.Helper()
	if _, err := fmt.Fprintln(j.ranks[rank].words); err != nil {
		j.t.Fatalf("jobtest: releasing rank %d: %v", rank, err)
	}
}

// ReleaseAll ends one Hold of every rank, a present or a future one.
func (j *Job) ReleaseAll() {
	j.t.Helper()
	for rank := range j.ranks {
		j.Release(rank)
	}
}

// Kill kills a rank's process by SIGKILL.
func (j *Job) Kill(rank int) {
	j.t.Helper()
	if err := j.ranks[rank].cmd.Process.Kill(); err != nil {
		j.t.Fatalf("jobtest: killing rank %d: %v", rank, err)
	}
}

// Killed kills a rank when all have signalled "ready". The test fails unless the bodies of all others return nil.
func (j *Job) Killed(victim int) {
	j.t.Helper()
	j.AwaitAll("ready")
	killed := time.Now()
	j.Kill(victim)
	for rank, err := range j.Wait() {
		switch {
		case rank == victim && (err == nil || !strings.Contains(err.Error(), "killed")):
			j.t.Errorf("jobtest: rank %d was killed, and has ended with: %v", rank, err)
		case rank != victim && err != nil:
			j.t.Errorf("jobtest: rank %d: %v", rank, err)
		}
	}
	j.t.Logf("%v from the kill to the end of all", time.Since(killed))
}

// Pid returns the process number of a rank.
func (j *Job) Pid(rank int) int { return j.ranks[rank].cmd.Process.Pid }

// AwaitEnd returns the rank's error when its process has ended.
func (j *Job) AwaitEnd(rank int) error {
	j.t.Helper()
	r := j.ranks[rank]
	j.await(fmt.Sprintf("the end of rank %d", rank), r, func() bool { return r.ended })
	return r.err
}

// Wait returns the ranks' errors when all processes have ended.
func (j *Job) Wait() []error {
	j.t.Helper()
	errs := make([]error, len(j.ranks))
	for rank := range j.ranks {
		errs[rank] = j.AwaitEnd(rank)
	}
	return errs
}

// Succeeds waits like Wait, and fails the test for each rank that has failed.
func (j *Job) Succeeds() {
	j.t.Helper()
	for rank, err := range j.Wait() {
		if err != nil {
			j.t.Errorf("rank %d: %v", rank, err)
		}
	}
}

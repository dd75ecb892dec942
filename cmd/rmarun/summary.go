package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/onesided/rma/internal/errtext"
)

// status returns the job's exit status: the status of what happened first.
func (j *job) status() int {
	first := j.first()
	switch {
	case j.ending != 0 && (j.aborted != nil || first == nil || first.terminated):
		return 128 + int(j.ending)
	case j.aborted != nil:
		// A shell sees the last byte of a status. An abort is no success, whatever its status.
		return max(j.aborted.status&0xff, 1)
	case j.needsTerminal && (first == nil || first.terminated):
		return 1
	case first != nil:
		return first.exit()
	case j.out.failed.Load() || j.errout.failed.Load():
		return 1
	}
	return 0
}

// first returns the rank that failed first, or nil: of the ranks that did not fail because of another, the one that
// ended first.
func (j *job) first() *rank {
	for _, r := range j.failed {
		if !j.follows(r) {
			return r
		}
	}
	if len(j.failed) > 0 {
		return j.failed[0]
	}
	return nil
}

// follows reports whether a rank failed because another had failed. Two ranks may blame each other: one fails, leaves
// the job and waits for the other, which fails because the first has left. Then the one that is blamed for leaving
// was first.
func (j *job) follows(r *rank) bool {
	at, _ := j.blamedBy(r)
	if at == nil {
		return false
	}
	for range j.ranks {
		next, left := j.blamedBy(at)
		if next == nil {
			break
		}
		if next == r && left {
			return false
		}
		at = next
	}
	return true
}

// blamedBy returns the failed rank that r, which has failed, blames, and whether it blames it for leaving. It returns
// nil if rmarun ended that rank. A rank that a signal has ended failed by that signal, whomever it blames.
func (j *job) blamedBy(r *rank) (blamed *rank, left bool) {
	b := j.blames[r.number].Load()
	if b == nil || !r.status.Exited() {
		return nil, false
	}
	if blamed = j.ranks[b.rank]; blamed == r || blamed.status == 0 || blamed.terminated {
		return nil, false
	}
	return blamed, b.left
}

// exit returns a rank's exit status as a shell reports it.
func (r *rank) exit() int {
	if r.status.Signaled() {
		return 128 + int(r.status.Signal())
	}
	return r.status.ExitStatus()
}

// summarize names the ranks that failed by themselves.
func (j *job) summarize() {
	terminated, followed := 0, 0
	first := j.first()
	for _, r := range j.failed {
		if r.terminated {
			terminated++
			continue
		}
		// If every rank blames another, all are named.
		if j.follows(r) && !j.follows(first) {
			followed++
			continue
		}
		fmt.Fprintf(os.Stderr, "rmarun: rank %d failed: %s\n", r.number, describe(r.status))
		lines := r.kept.unseen(j.lines.Load())
		if len(lines) > 0 {
			fmt.Fprintf(os.Stderr, "rmarun: the last lines of rank %d:\n", r.number)
		}
		for _, line := range lines {
			fmt.Fprintf(os.Stderr, "    %s\n", strings.TrimRight(string(line), "\n"))
		}
	}
	if followed > 0 {
		fmt.Fprintf(os.Stderr, "rmarun: %s failed because another had failed\n", errtext.Count(followed, "further rank"))
	}
	if terminated > 0 {
		fmt.Fprintln(os.Stderr, "rmarun: "+ended(terminated, terminated < len(j.failed)))
	}
}

// ended returns a sentence about the ranks that rmarun ended.
func ended(ranks int, besides bool) string {
	noun, were := "rank", "were"
	if besides {
		noun = "further rank"
	}
	if ranks == 1 {
		were = "was"
	}
	return fmt.Sprintf("%s %s ended", errtext.Count(ranks, noun), were)
}

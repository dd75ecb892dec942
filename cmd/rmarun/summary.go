package main

import (
	"fmt"
	"os"
	"strings"
)

// status is the job's exit status: that of what came first.
func (j *job) status() int {
	switch {
	case j.ending != 0 && (j.aborted != nil || len(j.failed) > 0 && j.failed[0].asked):
		return 128 + int(j.ending)
	case j.aborted != nil:
		// Of a status a shell sees the last byte. An abort is no success, whatever it says.
		return max(j.aborted.status&0xff, 1)
	case j.stuck && (len(j.failed) == 0 || j.failed[0].asked):
		return 1
	case len(j.failed) > 0:
		return j.failed[0].exit()
	case j.out.failed.Load() || j.errout.failed.Load():
		return 1
	}
	return 0
}

// exit is a rank's exit status as a shell gives it.
func (r *rank) exit() int {
	if r.status.Signaled() {
		return 128 + int(r.status.Signal())
	}
	return r.status.ExitStatus()
}

// summarize names the ranks that failed by themselves.
func (j *job) summarize() {
	told := 0
	for _, r := range j.failed {
		if r.asked {
			told++
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
	if told > 0 {
		fmt.Fprintln(os.Stderr, "rmarun: "+ended(told, told < len(j.failed)))
	}
}

// ended is a sentence on ranks that were ended, besides others that were named or not.
func ended(ranks int, besides bool) string {
	further, plural := "", "s were"
	if besides {
		further = "further "
	}
	if ranks == 1 {
		plural = " was"
	}
	return fmt.Sprintf("%d %srank%s ended", ranks, further, plural)
}

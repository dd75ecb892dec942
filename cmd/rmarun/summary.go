package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// status is the job's exit status.
func (j *job) status() int {
	switch {
	case j.aborted != nil:
		// Of a status a shell sees the last byte. An abort is no success, whatever it says.
		return max(j.aborted.status&0xff, 1)
	case len(j.failed) > 0:
		return j.failed[0].status()
	case j.out.failed() || j.errout.failed():
		return 1
	}
	return 0
}

// status is a rank's exit status as a shell gives it.
func (r *rank) status() int {
	var exit *exec.ExitError
	if !errors.As(r.err, &exit) {
		return 1
	}
	if wait, ok := exit.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return 128 + int(wait.Signal())
	}
	return exit.ExitCode()
}

// summarize names the ranks that failed by themselves.
func (j *job) summarize() {
	told := 0
	for _, r := range j.failed {
		if r.asked {
			told++
			continue
		}
		fmt.Fprintf(os.Stderr, "rmarun: rank %d failed: %v\n", r.number, r.err)
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

// ended says that so many ranks were ended, besides others or not.
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

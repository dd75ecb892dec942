package main

import (
	"fmt"
	"slices"
	"time"
)

// A usage is how much the processors have worked until a moment.
type usage struct {
	at time.Time
	// all is what all processors did for anyone, and ours what this process and those it started and waited for had of that.
	all, ours time.Duration
	known     bool
}

func usageNow() usage {
	all, known := busyTime()
	return usage{time.Now(), all, processorTime() + childrenTime(), known}
}

// othersSince is how many cores were busy for other work, if the system tells and the time is long enough for the ticks
// that it counts in. Threads of the kernel, what a hypervisor took and ranks that a killed launcher left count as that.
func (u usage) othersSince(before usage) (cores float64, known bool) {
	const shortest = 200 * time.Millisecond
	elapsed := u.at.Sub(before.at)
	if !u.known || !before.known || elapsed < shortest {
		return 0, false
	}
	return max(0, float64(u.all-before.all-(u.ours-before.ours))/float64(elapsed)), true
}

// A machineLoad is what else the machine did during a run.
type machineLoad struct {
	// began and ended are the load averages of a minute then, "" if unknown.
	began, ended string
	// others are the cores that others kept busy in each step.
	others []float64
	// most is the step in which that was most.
	most string
}

func (l *machineLoad) add(about string, cores float64) {
	if len(l.others) == 0 || cores > slices.Max(l.others) {
		l.most = about
	}
	l.others = append(l.others, cores)
}

// says are sentences about it. busy reports whether values suffer from it.
func (l *machineLoad) says(cores int) (text string, busy bool) {
	text = "The system does not tell its load."
	if l.began != "" {
		text = fmt.Sprintf("The load average was %s before the run and %s at its end, the run's own ranks included, on %s.", l.began, l.ended, plural(cores, "core"))
	}
	if len(l.others) == 0 {
		return text, false
	}
	const noticed = 0.1 // of the cores
	half, most := median(l.others), slices.Max(l.others)
	text += fmt.Sprintf(" Other work kept %.1f cores busy in half of the steps or more, and %.1f at most (%s).", half, most, l.most)
	if busy = most >= noticed*float64(cores); busy {
		text += " Values may be worse because of it: the lowest and the highest of the rounds may show by how much."
	}
	return text, busy
}

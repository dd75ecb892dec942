package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/onesided/rma/bench/internal/stats"
	"github.com/onesided/rma/bench/internal/table"
)

// A Usage is the work of the processors until a moment.
type Usage struct {
	At time.Time
	// all is the work of all processors. ours is the part of this process and of its children that have ended.
	all, ours time.Duration
	known     bool
}

// Now returns the work of the processors until now.
func Now() Usage {
	all, known := busyTime()
	return Usage{time.Now(), all, ProcessorTime() + childrenTime(), known}
}

// OthersSince returns the number of cores that were busy with other work. It is known if the system reports it and
// the time is long enough for the system's ticks. Kernel threads, time taken by a hypervisor, and ranks that a killed
// launcher left behind count as other work.
func (u Usage) OthersSince(before Usage) (cores float64, known bool) {
	const shortest = 200 * time.Millisecond
	elapsed := u.At.Sub(before.At)
	if !u.known || !before.known || elapsed < shortest {
		return 0, false
	}
	return max(0, float64(u.all-before.all-(u.ours-before.ours))/float64(elapsed)), true
}

// A Load is the other work of the machine during a run.
type Load struct {
	// Began and ended are the load averages of a minute at the begin and the end, or "".
	Began, Ended string
	// others has the cores busy with other work in each step.
	others []float64
	// most is the step with the most other work.
	most string
}

// Add records how many cores were busy with other work in a step.
func (l *Load) Add(about string, cores float64) {
	if len(l.others) == 0 || cores > slices.Max(l.others) {
		l.most = about
	}
	l.others = append(l.others, cores)
}

// Describe describes the load in sentences. busy reports whether values suffer from it.
func (l *Load) Describe(cores int) (text string, busy bool) {
	text = "The system does not report its load."
	if l.Began != "" {
		text = fmt.Sprintf("The load average was %s before the run and %s at its end, the run's own ranks included, on %s.", l.Began, l.Ended, table.Plural(cores, "core"))
	}
	if len(l.others) == 0 {
		return text, false
	}
	const noticed = 0.1 // of the cores
	half, most := stats.Median(l.others), slices.Max(l.others)
	text += fmt.Sprintf(" Other work kept %.1f cores busy in half of the steps or more, and %.1f at most (%s).", half, most, l.most)
	if busy = most >= noticed*float64(cores); busy {
		text += " Values may be worse because of it: the lowest and the highest of the rounds may show by how much."
	}
	return text, busy
}

package jobtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/onesided/rma/internal/await"
)

// exitOrphan is the status of a rank whose test's process has ended.
const exitOrphan = 3

var reports = sync.OnceValue(func() *os.File { return os.NewFile(reportFile, "reports") })

// report tells the test how a rank does: a word and a text, on a line.
func report(word, text string) {
	_, _ = fmt.Fprintf(reports(), "%s %q\n", word, text)
}

// isProcess reports whether this process is a rank that a test has started.
func isProcess() bool { return os.Getenv(bodyVariable) != "" }

// Signal tells the test, in Job.Await, that the rank has come to a point. In ranks
// that are goroutines it does nothing.
func Signal(point string) {
	if isProcess() {
		report("at", point)
	}
}

// SignalParked is a Signal that comes when a goroutine of the rank is parked in a function, which is named as for
// await.Parked: "job.(*World).Barrier". It returns at once: the rank calls the function next, and the test may then kill or stop it there. In
// ranks that are goroutines it does nothing.
func SignalParked(ctx context.Context, point, function string) {
	if !isProcess() {
		return
	}
	go func() {
		if await.UntilParked(ctx, function, 1) == nil {
			report("at", point)
		}
	}()
}

// releases has a value for each Job.Release.
var releases = make(chan struct{}, 1024)

// followTest takes the words of the test. They end when its process does, and so does this one: the test may end
// without having ended its ranks.
func followTest() {
	for words := bufio.NewScanner(os.Stdin); words.Scan(); {
		releases <- struct{}{}
	}
	os.Exit(exitOrphan)
}

// Hold is a Signal that returns when the test has called Job.Release for the rank, once
// for each Hold. In ranks that are goroutines it does nothing.
func Hold(point string) error {
	if !isProcess() {
		return nil
	}
	report("at", point)
	<-releases
	return nil
}

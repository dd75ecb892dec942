package jobtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/onesided/rma/internal/await"
)

// exitOrphan is the exit status of a rank whose test's process has ended.
const exitOrphan = 3

var reports = sync.OnceValue(func() *os.File { return os.NewFile(reportFile, "reports") })

// report sends the test a line with a word and a text.
func report(word, text string) {
	_, _ = fmt.Fprintf(reports(), "%s %q\n", word, text)
}

// isProcess reports whether this process is a rank that a test has started.
func isProcess() bool { return os.Getenv(bodyVariable) != "" }

// Signal tells the test, in Job.Await, that the rank has reached a point. It does nothing in ranks that are
// goroutines.
func Signal(point string) {
	if isProcess() {
		report("at", point)
	}
}

// SignalParked sends a Signal when a goroutine of the rank is parked in a function. The function is named as for
// await.Parked, for example "job.(*World).Barrier". SignalParked returns at once: the rank calls the function next,
// and the test may then kill or stop the rank there. It does nothing in ranks that are goroutines.
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

// followTest reads the words of the test. They end when the test's process ends, and then this process ends, too: the
// test may end without having ended its ranks.
func followTest() {
	for words := bufio.NewScanner(os.Stdin); words.Scan(); {
		releases <- struct{}{}
	}
	os.Exit(exitOrphan)
}

// Hold sends a Signal, and returns when the test has called Job.Release for the rank, once for each Hold. It does
// nothing in ranks that are goroutines.
func Hold(point string) error {
	if !isProcess() {
		return nil
	}
	report("at", point)
	<-releases
	return nil
}

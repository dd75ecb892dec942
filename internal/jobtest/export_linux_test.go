package jobtest

import (
	"os"
	"time"
)

// Tests of failures do not wait long for a rank to release what it holds, because it never does.
func init() {
	if os.Getenv("RMA_JOBTEST_FAILS") != "" {
		settleLimit = 100 * time.Millisecond // expires
	}
}

// CloseWords closes the pipe from the test to a rank, as the end of the test's process does.
func (j *Job) CloseWords(rank int) error { return j.ranks[rank].words.Close() }

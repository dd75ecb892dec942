package pmi

import (
	"os"
	"runtime"
	"strconv"
)

// Share returns the variables that a launcher adds to the environment of each of the ranks on this machine. With them
// Go programs share the processors. GOMAXPROCS is the rank's part of the processors that this process may use, at least
// 1. Share returns nothing if the environment has GOMAXPROCS already.
func Share(ranks int) []string {
	if os.Getenv("GOMAXPROCS") != "" {
		return nil
	}
	return []string{"GOMAXPROCS=" + strconv.Itoa(max(1, runtime.GOMAXPROCS(0)/max(1, ranks)))}
}

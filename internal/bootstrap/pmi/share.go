package pmi

import (
	"os"
	"runtime"
	"strconv"
)

// Share is what a launcher adds to the environment of each of so many ranks that it starts on this machine, in
// order that those that are Go programs have the processors once: GOMAXPROCS is the rank's part of those that this process may
// use, but 1 at least. It is nothing where the environment says how many already.
func Share(ranks int) []string {
	if os.Getenv("GOMAXPROCS") != "" {
		return nil
	}
	return []string{"GOMAXPROCS=" + strconv.Itoa(max(1, runtime.GOMAXPROCS(0)/max(1, ranks)))}
}

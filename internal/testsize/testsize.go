// Package testsize controls how much the tests try, and says how to repeat a failure.
//
// A test that draws random programs, plans or values, or that repeats itself, asks N how often to do so. Samples and
// Random also log the command that repeats a failure:
//
//	for seed := range testsize.Samples(t, 300) {
//		run(t, seed)
//	}
//
// The number in the source is the number for a plain go test. Two variables change it for all packages:
//
//	RMA_TEST_SIZE=20     20 times as much; 0.2 for a fifth
//	RMA_TEST_SEED=7      the first seed, 0 by default
//
// The flag -short means RMA_TEST_SIZE=0.2 if the variable is not set.
//
// Processes that a test starts inherit both if their environment has the variables of Environment.
package testsize

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"sync"
	"testing"
)

const (
	sizeVariable = "RMA_TEST_SIZE"
	seedVariable = "RMA_TEST_SEED"
	// seedBits leaves room for the seeds that follow.
	seedBits = 63
	// short is the size under -short.
	short = 0.2
	// most bounds what N returns, so that no product overflows.
	most = math.MaxInt32
)

// N returns how often to repeat what a plain run does n times: n times the size, and at least 1. It ends the program
// if the variable is not a positive number.
func N(n int) int {
	return scale(n, Size())
}

func scale(n int, size float64) int {
	return int(max(1, min(math.Round(float64(n)*size), most)))
}

// PlainOrLarge returns plain in runs of a size up to 1, and large in larger ones. It is for numbers of ranks and bytes,
// which do not grow with the size.
func PlainOrLarge(plain, large int) int {
	if Size() > 1 {
		return large
	}
	return plain
}

// Seed returns the first seed of random samples. It ends the program if the variable is not a number.
func Seed() uint64 {
	return must(seed())
}

// Environment returns the variables that give a started process the size and seed of this one, as KEY=VALUE.
func Environment() []string {
	return []string{fmt.Sprintf("%s=%v", sizeVariable, Size()), fmt.Sprintf("%s=%d", seedVariable, Seed())}
}

// Size returns the size: 1 in a plain run. It ends the program if the variable is not a positive number.
func Size() float64 { return must(parseSize(os.Getenv(sizeVariable), isShort())) }

// isShort reports whether -short is set. A process that a test has started has not parsed its flags. Its environment
// has the size.
func isShort() bool { return testing.Testing() && flag.Parsed() && testing.Short() }

func parseSize(text string, isShort bool) (float64, error) {
	switch {
	case text != "":
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || !(value > 0) || math.IsInf(value, 0) {
			return 0, fmt.Errorf("testsize: %s=%q: must be a positive number", sizeVariable, text)
		}
		return value, nil
	case isShort:
		return short, nil
	}
	return 1, nil
}

var seed = sync.OnceValues(func() (uint64, error) { return parseSeed(os.Getenv(seedVariable)) })

func parseSeed(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	value, err := strconv.ParseUint(text, 10, seedBits)
	if err != nil {
		return 0, fmt.Errorf("testsize: %s=%q: must be a whole number from 0 to %d", seedVariable, text, uint64(1)<<seedBits-1)
	}
	return value, nil
}

// must ends the program on an error. Otherwise a run of another size would pass for a run of the requested size.
func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return value
}

// Either returns plain, or raced if the race detector is in this build. The detector makes each access several times
// slower and uses more memory.
func Either[T any](plain, raced T) T {
	if Race {
		return raced
	}
	return plain
}

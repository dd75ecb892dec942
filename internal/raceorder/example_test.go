package raceorder_test

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/internal/raceorder"
)

func Example() {
	// The words would be in memory that both processes map.
	var asked, answered atomic.Bool
	window := make([]int, 1)

	// A goroutine that serves others writes to the window, and tells whoever asked.
	window[0] = 7
	raceorder.BeforeTelling()
	answered.Store(true)

	// One that has heard of it looks at the window.
	asked.Store(true)
	if answered.Load() {
		raceorder.AfterHearing()
		fmt.Println(window[0])
	}
	// Output: 7
}

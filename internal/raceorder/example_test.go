package raceorder_test

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/internal/raceorder"
)

func Example() {
	// In real use the words are in memory that both processes map.
	var asked, answered atomic.Bool
	window := make([]int, 1)

	// A goroutine that serves other processes writes to the window, and then answers.
	window[0] = 7
	raceorder.BeforeTelling()
	answered.Store(true)

	// A goroutine that has seen the answer reads the window.
	asked.Store(true)
	if answered.Load() {
		raceorder.AfterHearing()
		fmt.Println(window[0])
	}
	// Output: 7
}

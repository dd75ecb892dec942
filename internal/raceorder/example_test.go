package raceorder_test

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/internal/raceorder"
)

func Example() {
	// In real use the words are in memory that both processes map.
	var requested, responded atomic.Bool
	window := make([]int, 1)

	// A goroutine that serves other processes writes to the window, and then responds.
	window[0] = 7
	raceorder.Release()
	responded.Store(true)

	// A goroutine that has seen the response reads the window.
	requested.Store(true)
	if responded.Load() {
		raceorder.Acquire()
		fmt.Println(window[0])
	}
	// Output: 7
}

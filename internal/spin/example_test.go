package spin_test

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/internal/spin"
)

func Example() {
	var told atomic.Bool
	go told.Store(true)
	for !told.Load() {
		spin.Relax()
	}
	fmt.Println("heard")
	// Output: heard
}

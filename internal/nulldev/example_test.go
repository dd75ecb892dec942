//go:build ibverbs && cgo && linux

package nulldev_test

import (
	"fmt"

	"github.com/onesided/rma/internal/nulldev"
)

func ExampleNew() {
	pair, queue, free := nulldev.New()
	defer free()
	// In a benchmark package ibv uses the pointers like those of a card.
	fmt.Println(pair != nil, queue != nil)
	// Output: true true
}

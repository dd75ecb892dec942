//go:build ibverbs && cgo && linux

package nulldev_test

import (
	"fmt"

	"github.com/onesided/rma/internal/nulldev"
)

func ExampleNew() {
	pair, queue, free := nulldev.New()
	defer free()
	// Package ibv takes the pointers for those of a card, in a benchmark.
	fmt.Println(pair != nil, queue != nil)
	// Output: true true
}

//go:build ibverbs && cgo && linux

package hollow_test

import (
	"fmt"

	"github.com/onesided/rma/verbs/ibv/hollow"
)

func ExampleNew() {
	pair, queue, free := hollow.New()
	defer free()
	// Package ibv takes the pointers for those of a card, in a benchmark.
	fmt.Println(pair != nil, queue != nil)
	// Output: true true
}

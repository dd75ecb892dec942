package aggregate_test

import (
	"encoding/binary"
	"fmt"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
)

// An origin packs two puts, a get and a notification; the target checks what has come, and
// takes it apart.
func Example() {
	var w aggregate.Writer
	w.Begin(make([]byte, 128), 64)
	for i, word := range []uint64{7, 8} {
		operand, _ := w.Add(&aggregate.Shape{Kind: aggregate.Put, Size: 8}, uint64(i)*8)
		binary.LittleEndian.PutUint64(operand, word)
	}
	w.Add(&aggregate.Shape{Kind: aggregate.Get, Size: 4}, 24)
	w.Add(&aggregate.Shape{Kind: aggregate.Notify}, 1)

	packet := w.Packet()
	response, err := aggregate.Check(packet)
	fmt.Println(len(packet), "bytes, a response of", response, err)
	reader := aggregate.NewReader(packet)
	for run, ok := reader.Next(); ok; run, ok = reader.Next() {
		for i := range run.Count {
			offset, operand := run.Operation(i)
			fmt.Println("kind", run.Kind, "of", run.Size, "bytes at", offset, operand)
		}
	}
	// Output:
	// 72 bytes, a response of 8 <nil>
	// kind 1 of 8 bytes at 0 [7 0 0 0 0 0 0 0]
	// kind 1 of 8 bytes at 8 [8 0 0 0 0 0 0 0]
	// kind 2 of 4 bytes at 24 []
	// kind 6 of 0 bytes at 1 []
}

// A packet of a stranger is refused, with the reason.
func ExampleCheck() {
	_, err := aggregate.Check([]byte{byte(aggregate.Accumulate), byte(reduce.And), byte(reduce.Float64), 0, 8, 0, 1, 0})
	fmt.Println(err)
	// Output: aggregate: malformed packet: reduce: operation not for this element type: And of float64; allowed are Sum, Product, Min, Max, Replace and NoOp
}

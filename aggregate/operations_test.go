package aggregate_test

import (
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
)

// operation is what a packet has of one.
type operation struct {
	shape   aggregate.Shape
	offset  uint64
	operand []byte
}

// packed is how long operations are in a packet, by the format.
func packed(operations []operation) (n int) {
	count := 0
	for i, o := range operations {
		if count++; i == 0 || o.shape != operations[i-1].shape || count > 65535 {
			n += 8
			count = 1
		}
		n += 8 + up(len(o.operand))
	}
	return n
}

// responseBytes is the length of the response to them.
func responseBytes(operations []operation) (n int) {
	for _, o := range operations {
		switch o.shape.Kind {
		case aggregate.Get, aggregate.Fetch, aggregate.Swap:
			n += up(o.shape.Size)
		}
	}
	return n
}

// up is the next multiple of 8.
func up(n int) int { return (n + 7) / 8 * 8 }

// operandBytes is how long the operand is of an operation of a shape.
func operandBytes(s aggregate.Shape) int {
	switch s.Kind {
	case aggregate.Put, aggregate.Accumulate:
		return s.Size
	case aggregate.Fetch:
		if s.Op != reduce.NoOp {
			return s.Size
		}
	case aggregate.Swap:
		return 2 * s.Size
	}
	return 0
}

// operations makes count of a shape, of which no two bytes of operands near each other are
// the same, and none is zero.
func operations(s aggregate.Shape, count int) []operation {
	all := make([]operation, count)
	next := 0
	for i := range all {
		operand := make([]byte, operandBytes(s))
		for j := range operand {
			operand[j] = byte(next%255) + 1
			next++
		}
		all[i] = operation{s, uint64(i)*0x0102030405060708 + 3, operand}
	}
	return all
}

// sizes of puts and gets.
var sizes = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 63, 64, 65, 1000, aggregate.MaxSize - 1, aggregate.MaxSize}

// shapes are all that there are, of some sizes.
func shapes() iter.Seq[aggregate.Shape] {
	return func(yield func(aggregate.Shape) bool) {
		for _, kind := range []aggregate.Kind{aggregate.Put, aggregate.Get} {
			for _, size := range sizes {
				if !yield(aggregate.Shape{Kind: kind, Size: size}) {
					return
				}
			}
		}
		if !yield(aggregate.Shape{Kind: aggregate.Notify}) {
			return
		}
		for element := range reduce.Kinds {
			if !yield(aggregate.Shape{Kind: aggregate.Swap, Element: element, Size: element.Size()}) {
				return
			}
			for op := reduce.Sum; op <= reduce.NoOp; op++ {
				if reduce.Supported(element, op) != nil {
					continue
				}
				for _, elements := range []int{0, 1, 2, 3, 7, 8, 9, 100, aggregate.MaxSize / element.Size()} {
					for _, kind := range []aggregate.Kind{aggregate.Accumulate, aggregate.Fetch} {
						if !yield(aggregate.Shape{Kind: kind, Op: op, Element: element, Size: elements * element.Size()}) {
							return
						}
					}
				}
			}
		}
	}
}

// dirty is memory that is not zero.
func dirty(n int) []byte {
	memory := make([]byte, n)
	for i := range memory {
		memory[i] = 0xee
	}
	return memory
}

// add packs operations, and tells how many there was room for.
func add(w *aggregate.Writer, operations []operation) int {
	for i, o := range operations {
		operand, ok := w.Add(&o.shape, o.offset)
		if !ok {
			return i
		}
		copy(operand, o.operand)
	}
	return len(operations)
}

// pack packs operations into a packet that is as long as they need.
func pack(t testing.TB, operations []operation) []byte {
	t.Helper()
	var w aggregate.Writer
	w.Begin(dirty(packed(operations)), responseBytes(operations))
	require.Equal(t, len(operations), add(&w, operations))
	return w.Packet()
}

// read gives the operations of a packet.
func read(packet []byte) (operations []operation, runs int) {
	reader := aggregate.NewReader(packet)
	for run, ok := reader.Next(); ok; run, ok = reader.Next() {
		for i := range run.Count {
			offset, operand := run.Operation(i)
			operations = append(operations, operation{run.Shape, offset, operand})
		}
		runs++
	}
	return operations, runs
}

package aggregate_test

import (
	"encoding/binary"
	"testing"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
)

// words are operations of 8 bytes, as many as a packet of 64 KB has room for.
var words = []struct {
	name  string
	shape aggregate.Shape
}{
	{"put", aggregate.Shape{Kind: aggregate.Put, Size: 8}},
	{"get", aggregate.Shape{Kind: aggregate.Get, Size: 8}},
	{"accumulate", aggregate.Shape{Kind: aggregate.Accumulate, Element: reduce.Uint64, Size: 8}},
}

const packetBytes = 64 << 10

// packWords packs operations of 8 bytes at offsets far from each other until there is no
// room, and tells how many.
func packWords(memory []byte, shape *aggregate.Shape) ([]byte, int) {
	var w aggregate.Writer
	w.Begin(memory, packetBytes)
	for i := uint64(0); ; i++ {
		operand, ok := w.Add(shape, i*4096)
		if !ok {
			return w.Packet(), w.Operations()
		}
		if len(operand) == 8 {
			binary.LittleEndian.PutUint64(operand, i)
		}
	}
}

func perSecond(b *testing.B, operations int) {
	b.ReportMetric(float64(operations)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mop/s")
}

// BenchmarkPack packs operations of 8 bytes.
func BenchmarkPack(b *testing.B) {
	memory := make([]byte, packetBytes)
	for _, word := range words {
		b.Run(word.name, func(b *testing.B) {
			b.ReportAllocs()
			var n int
			for b.Loop() {
				_, n = packWords(memory, &word.shape)
			}
			perSecond(b, n)
		})
	}
}

// BenchmarkRead checks a packet of them and takes it apart.
func BenchmarkRead(b *testing.B) {
	memory := make([]byte, packetBytes)
	for _, word := range words {
		packet, n := packWords(memory, &word.shape)
		b.Run(word.name, func(b *testing.B) {
			b.ReportAllocs()
			var sum uint64
			for b.Loop() {
				sum += readWords(b, packet)
			}
			if sum == 0 {
				b.Fatal("nothing was read")
			}
			perSecond(b, n)
		})
	}
}

// readWords adds up the words of a packet.
func readWords(b *testing.B, packet []byte) (sum uint64) {
	if _, err := aggregate.Check(packet); err != nil {
		b.Fatal(err)
	}
	reader := aggregate.NewReader(packet)
	for run, ok := reader.Next(); ok; run, ok = reader.Next() {
		for i := range run.Count {
			offset, operand := run.Operation(i)
			sum += offset
			if len(operand) == 8 {
				sum += binary.LittleEndian.Uint64(operand)
			}
		}
	}
	return sum
}

package object_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/onesided/rma/internal/object"
)

// BenchmarkOf measures Of, alone and beside other Objects of the same array.
func BenchmarkOf(b *testing.B) {
	for _, others := range []int{0, 100, 1000} {
		b.Run(fmt.Sprintf("others=%d", others), func(b *testing.B) {
			array := make([]byte, 64<<20)
			for i := range others {
				o, _ := object.Of(array[i*4096:], func(int) {}, i)
				defer o.Stop()
			}
			b.ReportAllocs()
			for b.Loop() {
				o, _ := object.Of(array[others*4096:], func(int) {}, others)
				o.Stop()
			}
			runtime.KeepAlive(array)
		})
	}
}

// BenchmarkOfOther measures Of for memory that is no collectable object.
func BenchmarkOfOther(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		object.Of(global[:], func(int) {}, 1)
	}
}

func BenchmarkAlive(b *testing.B) {
	memory := make([]byte, 4096)
	o, _ := object.Of(memory, func(int) {}, 1)
	b.ReportAllocs()
	for b.Loop() {
		if o.Alive() == nil {
			b.Fatal("it is gone")
		}
	}
	runtime.KeepAlive(memory)
}

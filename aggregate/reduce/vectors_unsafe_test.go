package reduce_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/onesided/rma/aggregate/reduce"
)

// longest is the number of elements up to which every length is tried. It is more
// than a turn of the widest loop and than two of all others.
const longest = 300

// forVectors runs test for every operation that may have a vector at every level,
// with the function and its plain twin.
func forVectors(t *testing.T, test func(t *testing.T, kind reduce.Kind, vector, plain reduce.Func)) {
	for _, level := range vectors(t) {
		for kind, op := range combining() {
			t.Run(level.String()+"/"+kind.String()+"/"+op.String(), func(t *testing.T) {
				test(t, kind, lookup(t, level, kind, op), lookup(t, reduce.Plain, kind, op))
			})
		}
	}
}

// TestVectorsAreAsPlain tries every length at every alignment that elements have,
// of dst and of src, and between them every pair of the two.
func TestVectorsAreAsPlain(t *testing.T) {
	forVectors(t, func(t *testing.T, kind reduce.Kind, vector, plain reduce.Func) {
		size := min(kind.Size(), 8)
		room := 2*line + longest*kind.Size()
		random := rand.New(rand.NewPCG(1, uint64(kind)))
		values := pool(kind, 4*room, random)
		src, got, want := aligned(room), aligned(room), aligned(room)
		for n := 0; n <= longest; n++ {
			copy(src, values[random.IntN(3*room/16)*16:])
			for at := 0; at < line; at += size {
				from := (at + n*size) % line
				end := at + n*kind.Size()
				copy(got, values[random.IntN(3*room/16)*16:])
				copy(want, got)
				before := bytes.Clone(src)
				apply(vector, got[at:], src[from:], kind, n)
				apply(plain, want[at:], src[from:], kind, n)
				if !same(kind, got[at:end], want[at:end]) {
					t.Fatalf("%d elements, dst at %d and src at %d of a line:\n% x, plain makes it\n% x", n, at, from, got[at:end], want[at:end])
				}
				if !bytes.Equal(got[:at], want[:at]) || !bytes.Equal(got[end:], want[end:]) || !bytes.Equal(src, before) {
					t.Fatalf("%d elements, dst at %d and src at %d of a line: bytes beside dst are changed", n, at, from)
				}
			}
		}
	})
}

func TestVectorsOfMemoryWithItself(t *testing.T) {
	forVectors(t, func(t *testing.T, kind reduce.Kind, vector, plain reduce.Func) {
		room := 2*line + longest*kind.Size()
		values := pool(kind, room, rand.New(rand.NewPCG(2, uint64(kind))))
		got, want := aligned(room), aligned(room)
		for n := 0; n <= longest; n++ {
			at := n * min(kind.Size(), 8) % line
			copy(got, values)
			copy(want, values)
			apply(vector, got[at:], got[at:], kind, n)
			apply(plain, want[at:], want[at:], kind, n)
			if end := at + n*kind.Size(); !same(kind, got[at:end], want[at:end]) || !bytes.Equal(got[:at], want[:at]) || !bytes.Equal(got[end:], want[end:]) {
				t.Fatalf("%d elements at %d of a line:\n% x, plain makes it\n% x", n, at, got, want)
			}
		}
	})
}

// TestVectorsOfMuchMemory has lengths about those at which it is combined in pieces.
func TestVectorsOfMuchMemory(t *testing.T) {
	const much = 1 << 20
	src, got, want := aligned(much+line), aligned(much+line), aligned(much+line)
	forVectors(t, func(t *testing.T, kind reduce.Kind, vector, plain reduce.Func) {
		random := rand.New(rand.NewPCG(7, uint64(kind)))
		values := pool(kind, 1<<12, random)
		for i := 0; i < len(src); i += len(values) {
			copy(src[i:], values)
		}
		for _, bytes := range []int{much/2 - 16, much/2 + 16, much} {
			copy(got, src[48:])
			copy(want, src[48:])
			apply(vector, got, src, kind, bytes/kind.Size())
			apply(plain, want, src, kind, bytes/kind.Size())
			if !same(kind, got, want) {
				t.Errorf("%d bytes are not as plain makes them", bytes)
			}
		}
	})
}

// FuzzVectors compares any operation on any bytes with its plain twin. The first
// half of the bytes is dst and the second src.
func FuzzVectors(f *testing.F) {
	f.Add(uint8(reduce.Float64), uint8(reduce.Max), uint8(3), uint8(1), bytes.Repeat([]byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f}, 40))
	f.Add(uint8(reduce.Int16), uint8(reduce.Sum), uint8(1), uint8(0), bytes.Repeat([]byte{0x7f, 0xff, 0x80}, 100))
	f.Add(uint8(reduce.Uint8), uint8(reduce.Xor), uint8(0), uint8(9), []byte("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0"))
	f.Fuzz(func(t *testing.T, k, o, dstAt, srcAt uint8, values []byte) {
		kind, op := reduce.Kind(k), reduce.Op(o)
		if reduce.Supported(kind, op) != nil {
			return
		}
		size := kind.Size()
		n := len(values) / 2 / size
		at, from := int(dstAt)%8*min(size, 8), int(srcAt)%8*min(size, 8)
		src, want := aligned(from+n*size), aligned(at+n*size+line)
		copy(want[at:], values[:n*size])
		copy(src[from:], values[n*size:])
		before := bytes.Clone(want)
		apply(lookup(t, reduce.Plain, kind, op), want[at:], src[from:], kind, n)
		for _, level := range vectors(t) {
			got := aligned(len(before))
			copy(got, before)
			apply(lookup(t, level, kind, op), got[at:], src[from:], kind, n)
			if end := at + n*size; !same(kind, got[at:end], want[at:end]) || !bytes.Equal(got[:at], want[:at]) || !bytes.Equal(got[end:], want[end:]) {
				t.Errorf("%v of %d %v at %v:\n% x, plain makes it\n% x", op, n, kind, level, got, want)
			}
		}
	})
}

package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// avx512 writes all functions of the level.
func avx512() {
	l := level{suffix: "AVX512", width: 64, move: VMOVDQU64, vector: ZMM}
	for _, f := range []struct {
		name    string
		combine combine
	}{
		{"sumFloat64", simple(VADDPD)},
	} {
		l.masked(f.name, f.combine)
	}
}

// masked writes a function that does the bytes behind the last whole vector under
// a mask, beyond which memory is neither read nor written.
func (l level) masked(name string, f combine) {
	a := l.begin(name, "any number")
	l.whole(a, f)
	TESTQ(a.n, a.n)
	JZ(operand.LabelRef("done"))
	// The mask has the lowest n of 64 bits.
	bits := GP64()
	MOVQ(operand.U64(1), bits)
	MOVQ(a.n, reg.RCX)
	SHLQ(reg.CL, bits)
	DECQ(bits)
	mask := K()
	KMOVQ(bits, mask)
	d, s := l.vector(), l.vector()
	VMOVDQU8_Z(operand.Mem{Base: a.dst}, mask, d)
	VMOVDQU8_Z(operand.Mem{Base: a.src}, mask, s)
	f(d, s)
	VMOVDQU8(d, mask, operand.Mem{Base: a.dst})
	Label("done")
	end()
}

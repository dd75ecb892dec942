package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
)

// avx2 writes all functions of the level. The set has no least and greatest of
// 64-bit integers.
func avx2() {
	l := level{suffix: "AVX2", width: 32, move: func(o ...operand.Op) { VMOVDQU(o[0], o[1]) }, vector: YMM}
	for _, f := range []struct {
		name    string
		combine combine
	}{
		{"sumFloat64", simple(VADDPD)},
	} {
		l.overlapping(f.name, f.combine)
	}
}

// overlapping writes a function whose last vector, where n is not a whole number
// of vectors, overlaps the one before. It is combined before anything is stored,
// so that no element is combined twice.
func (l level) overlapping(name string, f combine) {
	a := l.begin(name, "at least a vector")
	last, s := l.vector(), l.vector()
	l.move(operand.Mem{Base: a.dst, Disp: -l.width, Index: a.n, Scale: 1}, last)
	l.move(operand.Mem{Base: a.src, Disp: -l.width, Index: a.n, Scale: 1}, s)
	f(last, s)
	l.whole(a, f)
	TESTQ(a.n, a.n)
	JZ(operand.LabelRef("done"))
	l.move(last, operand.Mem{Base: a.dst, Disp: -l.width, Index: a.n, Scale: 1})
	Label("done")
	end()
}

package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// avx2 writes all functions of the level. AVX2 has no minimum and maximum of 64-bit integers.
func avx2() {
	l := level{suffix: "AVX2", width: 32, move: two(VMOVDQU), vector: YMM}
	for _, f := range []function{
		{"sum8", simple(VPADDB)},
		{"sum16", simple(VPADDW)},
		{"sum32", simple(VPADDD)},
		{"sum64", simple(VPADDQ)},
		{"sumFloat32", simple(VADDPS)},
		{"sumFloat64", simple(VADDPD)},

		{"minInt8", simple(VPMINSB)},
		{"minInt16", simple(VPMINSW)},
		{"minInt32", simple(VPMINSD)},
		{"minUint8", simple(VPMINUB)},
		{"minUint16", simple(VPMINUW)},
		{"minUint32", simple(VPMINUD)},
		{"minFloat32", leastFloat(VMINPS, VORPS)},
		{"minFloat64", leastFloat(VMINPD, VORPD)},

		{"maxInt8", simple(VPMAXSB)},
		{"maxInt16", simple(VPMAXSW)},
		{"maxInt32", simple(VPMAXSD)},
		{"maxUint8", simple(VPMAXUB)},
		{"maxUint16", simple(VPMAXUW)},
		{"maxUint32", simple(VPMAXUD)},
		{"maxFloat32", greatestFloat(VMAXPS, VANDPS, VCMPPS, VORPS)},
		{"maxFloat64", greatestFloat(VMAXPD, VANDPD, VCMPPD, VORPD)},

		{"and", simple(three(VPAND))},
		{"or", simple(three(VPOR))},
		{"xor", simple(three(VPXOR))},
	} {
		l.overlapping(f)
	}
}

// overlapping writes a function whose last vector overlaps the previous one where n is not a whole number of vectors.
// The last vector is combined before anything is stored, so that no element is combined twice.
func (l level) overlapping(f function) {
	a := l.begin(f.name, "32 or more")
	d, s := l.vector(), l.vector()
	l.move(operand.Mem{Base: a.dst, Disp: -l.width, Index: a.n, Scale: 1}, d)
	l.move(operand.Mem{Base: a.src, Disp: -l.width, Index: a.n, Scale: 1}, s)
	last := f.combine(d, s)
	l.whole(a, f.combine)
	TESTQ(a.n, a.n)
	JZ(operand.LabelRef("done"))
	l.move(last, operand.Mem{Base: a.dst, Disp: -l.width, Index: a.n, Scale: 1})
	Label("done")
	end()
}

// leastFloat relies on this: the instruction returns its second operand if either is a NaN or both are zero, and
// otherwise the same number in either order. So the OR of both orders is a NaN if there is one, and -0 if there is one.
func leastFloat(least, or instruction) combine {
	return func(d, s reg.VecVirtual) reg.VecVirtual {
		other := YMM()
		least(d, s, other)
		least(s, d, d)
		or(other, d, d)
		return d
	}
}

// greatestFloat is like leastFloat with the AND of both orders, which is 0 if there is a 0. A NaN is made by setting
// all bits.
func greatestFloat(greatest, and, compare, or instruction) combine {
	return func(d, s reg.VecVirtual) reg.VecVirtual {
		nan, other := YMM(), YMM()
		compare(unordered, s, d, nan)
		greatest(d, s, other)
		greatest(s, d, d)
		and(other, d, d)
		or(nan, d, d)
		return d
	}
}

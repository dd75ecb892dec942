package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// unordered is the comparison that finds a NaN in either operand.
const unordered = operand.U8(3)

// The smaller and the larger of two numbers with their sign; -0 is less than 0.
const (
	rangeLeast    = operand.U8(0b0100)
	rangeGreatest = operand.U8(0b0101)
)

// avx512 writes all functions of the level.
func avx512() {
	l := level{suffix: "AVX512", width: 64, move: VMOVDQU64, vector: ZMM}
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
		{"minInt64", simple(VPMINSQ)},
		{"minUint8", simple(VPMINUB)},
		{"minUint16", simple(VPMINUW)},
		{"minUint32", simple(VPMINUD)},
		{"minUint64", simple(VPMINUQ)},
		{"minFloat32", rangeFloat(rangeLeast, VRANGEPS, VCMPPS, VADDPS)},
		{"minFloat64", rangeFloat(rangeLeast, VRANGEPD, VCMPPD, VADDPD)},

		{"maxInt8", simple(VPMAXSB)},
		{"maxInt16", simple(VPMAXSW)},
		{"maxInt32", simple(VPMAXSD)},
		{"maxInt64", simple(VPMAXSQ)},
		{"maxUint8", simple(VPMAXUB)},
		{"maxUint16", simple(VPMAXUW)},
		{"maxUint32", simple(VPMAXUD)},
		{"maxUint64", simple(VPMAXUQ)},
		{"maxFloat32", rangeFloat(rangeGreatest, VRANGEPS, VCMPPS, VADDPS)},
		{"maxFloat64", rangeFloat(rangeGreatest, VRANGEPD, VCMPPD, VADDPD)},

		{"and", simple(VPANDQ)},
		{"or", simple(VPORQ)},
		{"xor", simple(VPXORQ)},
	} {
		l.masked(f)
	}
}

// masked writes a function that handles the bytes after the last whole vector under a mask. Memory outside the mask is
// neither read nor written. Registers are 0 there, which is valid for every instruction.
func (l level) masked(f function) {
	a := l.begin(f.name, "any number")
	l.whole(a, f.combine)
	TESTQ(a.n, a.n)
	JZ(operand.LabelRef("done"))
	Comment("A mask of the n bytes.")
	bits, mask := GP64(), K()
	MOVQ(operand.U64(1), bits)
	MOVQ(a.n, reg.RCX)
	SHLQ(reg.CL, bits)
	DECQ(bits)
	KMOVQ(bits, mask)
	d, s := l.vector(), l.vector()
	VMOVDQU8_Z(operand.Mem{Base: a.dst}, mask, d)
	VMOVDQU8_Z(operand.Mem{Base: a.src}, mask, s)
	VMOVDQU8(f.combine(d, s), mask, operand.Mem{Base: a.dst})
	Label("done")
	end()
}

// rangeFloat fixes the result where either operand is a NaN: the instruction may return the other operand, but their
// sum is a NaN.
func rangeFloat(which operand.U8, within, compare, add instruction) combine {
	return func(d, s reg.VecVirtual) reg.VecVirtual {
		nan, result := K(), ZMM()
		compare(unordered, s, d, nan)
		within(which, s, d, result)
		add(s, d, nan, result)
		return result
	}
}

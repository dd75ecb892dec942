package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// unroll is the number of vectors per iteration of the main loop.
const unroll = 4

// A combine writes the instructions of op(d, s) and returns the register of the result. They may overwrite d and s.
type combine func(d, s reg.VecVirtual) (result reg.VecVirtual)

// An instruction writes one instruction by avo.
type instruction func(operands ...operand.Op)

// A function is a function to be written.
type function struct {
	name    string
	combine combine
}

// simple returns a combine of one instruction whose first operand is d. avo has operands in the order of Go's
// assembler, the destination last.
func simple(op instruction) combine {
	return func(d, s reg.VecVirtual) reg.VecVirtual {
		op(s, d, d)
		return d
	}
}

// two and three adapt functions of avo with a fixed number of operands.
func two(op func(a, b operand.Op)) instruction {
	return func(o ...operand.Op) { op(o[0], o[1]) }
}

func three(op func(a, b, c operand.Op)) instruction {
	return func(o ...operand.Op) { op(o[0], o[1], o[2]) }
}

// level is what the functions of one level have in common.
type level struct {
	suffix string
	// width is the length of a vector in bytes.
	width int
	// move moves a vector from or to memory.
	move instruction
	// vector returns a new register.
	vector func() reg.VecVirtual
}

// arguments are the registers of a function.
type arguments struct {
	dst, src, n reg.GPVirtual
}

// begin writes the head of a function. Lengths are in bytes, so that one function serves every type whose elements it
// combines alike.
func (l level) begin(name, allowed string) arguments {
	TEXT(name+l.suffix, NOSPLIT, "func(dst, src *byte, n int)")
	Pragma("noescape")
	Doc(name + l.suffix + " combines n bytes, " + allowed + ".")
	a := arguments{GP64(), GP64(), GP64()}
	Load(Param("dst"), a.dst)
	Load(Param("src"), a.src)
	Load(Param("n"), a.n)
	return a
}

func end() {
	VZEROUPPER()
	RET()
}

// whole writes the loops over whole vectors. They leave dst and src after the last whole vector, and the remaining
// bytes in n.
func (l level) whole(a arguments, f combine) {
	l.loop(a, "four", unroll, f)
	l.loop(a, "one", 1, f)
}

// loop writes a loop over steps of several vectors while a whole step remains. It loads all of a step before it stores
// any of it, so that stores do not delay the loads.
func (l level) loop(a arguments, label string, vectors int, f combine) {
	step := operand.U32(vectors * l.width)
	CMPQ(a.n, step)
	JB(operand.LabelRef(label + "Done"))
	Label(label)
	d, s := make([]reg.VecVirtual, vectors), make([]reg.VecVirtual, vectors)
	for i := range vectors {
		d[i], s[i] = l.vector(), l.vector()
		l.move(operand.Mem{Base: a.dst, Disp: i * l.width}, d[i])
		l.move(operand.Mem{Base: a.src, Disp: i * l.width}, s[i])
	}
	for i := range vectors {
		d[i] = f(d[i], s[i])
	}
	for i := range vectors {
		l.move(d[i], operand.Mem{Base: a.dst, Disp: i * l.width})
	}
	ADDQ(step, a.dst)
	ADDQ(step, a.src)
	SUBQ(step, a.n)
	CMPQ(a.n, step)
	JAE(operand.LabelRef(label))
	Label(label + "Done")
}

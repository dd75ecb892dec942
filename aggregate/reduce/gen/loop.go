package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// unroll is how many vectors a turn of the main loop does.
const unroll = 4

// A combine writes the instructions of op(d, s), after which both may be gone, and
// tells where the result is.
type combine func(d, s reg.VecVirtual) (result reg.VecVirtual)

// An instruction is one that avo can write.
type instruction func(operands ...operand.Op)

// A function is one to be written.
type function struct {
	name    string
	combine combine
}

// simple is a combine of one instruction, whose first operand is d: avo has
// operands in the order of Go's assembler, the last first.
func simple(op instruction) combine {
	return func(d, s reg.VecVirtual) reg.VecVirtual {
		op(s, d, d)
		return d
	}
}

// two and three are instructions that avo knows with so many operands only.
func two(op func(a, b operand.Op)) instruction {
	return func(o ...operand.Op) { op(o[0], o[1]) }
}

func three(op func(a, b, c operand.Op)) instruction {
	return func(o ...operand.Op) { op(o[0], o[1], o[2]) }
}

// level is what the functions of one level have in common.
type level struct {
	suffix string
	// width of a vector in bytes.
	width int
	// move a vector from or to memory.
	move instruction
	// vector is a new register.
	vector func() reg.VecVirtual
}

// arguments are the registers of a function.
type arguments struct {
	dst, src, n reg.GPVirtual
}

// begin writes the head of a function. The memory is given by bytes, so that one
// function serves every type whose elements it combines alike.
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

// whole writes the loops over whole vectors, which leave dst and src behind the
// last of them and in n the bytes that remain.
func (l level) whole(a arguments, f combine) {
	l.loop(a, "four", unroll, f)
	l.loop(a, "one", 1, f)
}

// loop writes a loop over steps of some vectors as long as there is a whole step.
// All of a step is loaded before any of it is stored, so that stores do not hold
// up the loads behind them.
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

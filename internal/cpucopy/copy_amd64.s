//go:build !race

#include "textflag.h"

// func copyVector(to, from unsafe.Pointer, n uintptr)
//
// The first 64 and the last 256 bytes are loaded before anything is stored and are
// stored last, so that the loop between can begin at a cache line of to.
TEXT ·copyVector(SB), NOSPLIT, $0-24
	MOVQ to+0(FP), DI
	MOVQ from+8(FP), SI
	MOVQ n+16(FP), CX
	VMOVDQU64 (SI), Z4
	VMOVDQU64 -256(SI)(CX*1), Z5
	VMOVDQU64 -192(SI)(CX*1), Z6
	VMOVDQU64 -128(SI)(CX*1), Z7
	VMOVDQU64 -64(SI)(CX*1), Z8
	MOVQ DI, R8
	LEAQ (DI)(CX*1), R9

	// To the next cache line of to.
	MOVQ DI, AX
	NEGQ AX
	ANDQ $63, AX
	ADDQ AX, DI
	ADDQ AX, SI
	SUBQ AX, CX
	SUBQ $256, CX
	JLS  ends

loop:
	VMOVDQU64 (SI), Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	VMOVDQA64 Z0, (DI)
	VMOVDQA64 Z1, 64(DI)
	VMOVDQA64 Z2, 128(DI)
	VMOVDQA64 Z3, 192(DI)
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	JHI  loop

ends:
	VMOVDQU64 Z4, (R8)
	VMOVDQU64 Z5, -256(R9)
	VMOVDQU64 Z6, -192(R9)
	VMOVDQU64 Z7, -128(R9)
	VMOVDQU64 Z8, -64(R9)
	VZEROUPPER
	RET

// func copyString(to, from unsafe.Pointer, n uintptr)
TEXT ·copyString(SB), NOSPLIT, $0-24
	MOVQ to+0(FP), DI
	MOVQ from+8(FP), SI
	MOVQ n+16(FP), CX
	REP; MOVSB
	RET

#include "textflag.h"

// func Write(at unsafe.Pointer)
//
// PREFETCHW (AX), which the assembler has no name for: the line at AX is about to be
// written. It never faults.
TEXT ·Write(SB), NOSPLIT, $0-8
	MOVQ at+0(FP), AX
	BYTE $0x0f; BYTE $0x0d; BYTE $0x08
	RET

// func Read(at unsafe.Pointer)
TEXT ·Read(SB), NOSPLIT, $0-8
	MOVQ at+0(FP), AX
	PREFETCHT0 (AX)
	RET

#include "textflag.h"

// func prefetch(at unsafe.Pointer)
//
// PREFETCHW (AX), which the assembler has no name for: the line at AX is about to be
// written. It never faults.
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVQ at+0(FP), AX
	BYTE $0x0f; BYTE $0x0d; BYTE $0x08
	RET

// func prefetchRead(at unsafe.Pointer)
TEXT ·prefetchRead(SB), NOSPLIT, $0-8
	MOVQ at+0(FP), AX
	PREFETCHT0 (AX)
	RET

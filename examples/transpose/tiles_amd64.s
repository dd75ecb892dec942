#include "textflag.h"

// func addTileVector(to *float64, stride int, from *float64, order, rows, columns int)
//
// Squares of 4 by 4 pass through registers, column by column of squares.
TEXT ·addTileVector(SB), NOSPLIT, $0-48
	MOVQ to+0(FP), DI
	MOVQ stride+8(FP), R8
	MOVQ from+16(FP), SI
	MOVQ order+24(FP), R9
	MOVQ columns+40(FP), DX
	SHLQ $3, R8
	SHLQ $3, R9
	LEAQ (R8)(R8*2), R10
	LEAQ (R9)(R9*2), R11
	MOVQ $0x3FF0000000000000, AX
	MOVQ AX, X15
	VBROADCASTSD X15, Y15

columns:
	MOVQ rows+32(FP), CX
	MOVQ SI, AX
	MOVQ DI, BX

square:
	VMOVUPD    (AX), Y0
	VMOVUPD    (AX)(R9*1), Y1
	VMOVUPD    (AX)(R9*2), Y2
	VMOVUPD    (AX)(R11*1), Y3
	VUNPCKLPD  Y1, Y0, Y4
	VUNPCKHPD  Y1, Y0, Y5
	VUNPCKLPD  Y3, Y2, Y6
	VUNPCKHPD  Y3, Y2, Y7
	VADDPD     Y15, Y0, Y0
	VADDPD     Y15, Y1, Y1
	VADDPD     Y15, Y2, Y2
	VADDPD     Y15, Y3, Y3
	VPERM2F128 $0x20, Y6, Y4, Y8
	VPERM2F128 $0x20, Y7, Y5, Y9
	VPERM2F128 $0x31, Y6, Y4, Y10
	VPERM2F128 $0x31, Y7, Y5, Y11
	VADDPD     (BX), Y8, Y8
	VADDPD     (BX)(R8*1), Y9, Y9
	VADDPD     (BX)(R8*2), Y10, Y10
	VADDPD     (BX)(R10*1), Y11, Y11
	VMOVUPD    Y0, (AX)
	VMOVUPD    Y1, (AX)(R9*1)
	VMOVUPD    Y2, (AX)(R9*2)
	VMOVUPD    Y3, (AX)(R11*1)
	VMOVUPD    Y8, (BX)
	VMOVUPD    Y9, (BX)(R8*1)
	VMOVUPD    Y10, (BX)(R8*2)
	VMOVUPD    Y11, (BX)(R10*1)
	ADDQ       $32, AX
	LEAQ       (BX)(R8*4), BX
	SUBQ       $4, CX
	JGT        square
	LEAQ       (SI)(R9*4), SI
	ADDQ       $32, DI
	SUBQ       $4, DX
	JGT        columns
	VZEROUPPER
	RET

// func storeTileVector(to *float64, stride int, from *float64, order, rows, columns int)
//
// As addTileVector.
TEXT ·storeTileVector(SB), NOSPLIT, $0-48
	MOVQ to+0(FP), DI
	MOVQ stride+8(FP), R8
	MOVQ from+16(FP), SI
	MOVQ order+24(FP), R9
	MOVQ columns+40(FP), DX
	SHLQ $3, R8
	SHLQ $3, R9
	LEAQ (R8)(R8*2), R10
	LEAQ (R9)(R9*2), R11
	MOVQ $0x3FF0000000000000, AX
	MOVQ AX, X15
	VBROADCASTSD X15, Y15

columns:
	MOVQ rows+32(FP), CX
	MOVQ SI, AX
	MOVQ DI, BX

square:
	VMOVUPD    (AX), Y0
	VMOVUPD    (AX)(R9*1), Y1
	VMOVUPD    (AX)(R9*2), Y2
	VMOVUPD    (AX)(R11*1), Y3
	VUNPCKLPD  Y1, Y0, Y4
	VUNPCKHPD  Y1, Y0, Y5
	VUNPCKLPD  Y3, Y2, Y6
	VUNPCKHPD  Y3, Y2, Y7
	VADDPD     Y15, Y0, Y0
	VADDPD     Y15, Y1, Y1
	VADDPD     Y15, Y2, Y2
	VADDPD     Y15, Y3, Y3
	VPERM2F128 $0x20, Y6, Y4, Y8
	VPERM2F128 $0x20, Y7, Y5, Y9
	VPERM2F128 $0x31, Y6, Y4, Y10
	VPERM2F128 $0x31, Y7, Y5, Y11
	VMOVUPD    Y0, (AX)
	VMOVUPD    Y1, (AX)(R9*1)
	VMOVUPD    Y2, (AX)(R9*2)
	VMOVUPD    Y3, (AX)(R11*1)
	VMOVUPD    Y8, (BX)
	VMOVUPD    Y9, (BX)(R8*1)
	VMOVUPD    Y10, (BX)(R8*2)
	VMOVUPD    Y11, (BX)(R10*1)
	ADDQ       $32, AX
	LEAQ       (BX)(R8*4), BX
	SUBQ       $4, CX
	JGT        square
	LEAQ       (SI)(R9*4), SI
	ADDQ       $32, DI
	SUBQ       $4, DX
	JGT        columns
	VZEROUPPER
	RET

// func addVector(to, from *float64, n int)
TEXT ·addVector(SB), NOSPLIT, $0-24
	MOVQ to+0(FP), DI
	MOVQ from+8(FP), SI
	MOVQ n+16(FP), CX
	SUBQ $16, CX
	JLT  tail

sixteen:
	VMOVUPD (SI), Y0
	VMOVUPD 32(SI), Y1
	VMOVUPD 64(SI), Y2
	VMOVUPD 96(SI), Y3
	VADDPD  (DI), Y0, Y0
	VADDPD  32(DI), Y1, Y1
	VADDPD  64(DI), Y2, Y2
	VADDPD  96(DI), Y3, Y3
	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	VMOVUPD Y2, 64(DI)
	VMOVUPD Y3, 96(DI)
	ADDQ    $128, SI
	ADDQ    $128, DI
	SUBQ    $16, CX
	JGE     sixteen

tail:
	ADDQ $16, CX
	JZ   done

one:
	VMOVSD (SI), X0
	VADDSD (DI), X0, X0
	VMOVSD X0, (DI)
	ADDQ   $8, SI
	ADDQ   $8, DI
	DECQ   CX
	JNZ    one

done:
	VZEROUPPER
	RET

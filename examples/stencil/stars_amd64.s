#include "textflag.h"

// func addStarsVector(out, in *float64, n, stride, radius int, weights *float64)
//
// in is at the middle of the first star. Sixteen stars are under way at a time, then four, then one.
TEXT ·addStarsVector(SB), NOSPLIT, $0-48
	MOVQ out+0(FP), DI
	MOVQ in+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ stride+24(FP), R8
	MOVQ radius+32(FP), R9
	MOVQ weights+40(FP), R10
	SHLQ $3, R8
	SUBQ $16, CX
	JLT  sixteenDone

sixteen:
	VMOVUPD (DI), Y0
	VMOVUPD 32(DI), Y1
	VMOVUPD 64(DI), Y2
	VMOVUPD 96(DI), Y3
	LEAQ    8(SI), AX
	LEAQ    -8(SI), BX
	LEAQ    (SI)(R8*1), R11
	MOVQ    SI, R12
	SUBQ    R8, R12
	MOVQ    R10, R13
	MOVQ    R9, DX

sixteenFurther:
	VBROADCASTSD (R13), Y12
	VMOVUPD      (AX), Y4
	VMOVUPD      32(AX), Y5
	VMOVUPD      64(AX), Y6
	VMOVUPD      96(AX), Y7
	VMOVUPD      (R11), Y8
	VMOVUPD      32(R11), Y9
	VMOVUPD      64(R11), Y10
	VMOVUPD      96(R11), Y11
	VSUBPD       (BX), Y4, Y4
	VSUBPD       32(BX), Y5, Y5
	VSUBPD       64(BX), Y6, Y6
	VSUBPD       96(BX), Y7, Y7
	VSUBPD       (R12), Y8, Y8
	VSUBPD       32(R12), Y9, Y9
	VSUBPD       64(R12), Y10, Y10
	VSUBPD       96(R12), Y11, Y11
	VADDPD       Y8, Y4, Y4
	VADDPD       Y9, Y5, Y5
	VADDPD       Y10, Y6, Y6
	VADDPD       Y11, Y7, Y7
	VFMADD231PD  Y12, Y4, Y0
	VFMADD231PD  Y12, Y5, Y1
	VFMADD231PD  Y12, Y6, Y2
	VFMADD231PD  Y12, Y7, Y3
	ADDQ         $8, AX
	SUBQ         $8, BX
	ADDQ         R8, R11
	SUBQ         R8, R12
	ADDQ         $8, R13
	DECQ         DX
	JNZ          sixteenFurther
	VMOVUPD      Y0, (DI)
	VMOVUPD      Y1, 32(DI)
	VMOVUPD      Y2, 64(DI)
	VMOVUPD      Y3, 96(DI)
	ADDQ         $128, DI
	ADDQ         $128, SI
	SUBQ         $16, CX
	JGE          sixteen

sixteenDone:
	ADDQ $12, CX
	JLT  fourDone

four:
	VMOVUPD (DI), Y0
	LEAQ    8(SI), AX
	LEAQ    -8(SI), BX
	LEAQ    (SI)(R8*1), R11
	MOVQ    SI, R12
	SUBQ    R8, R12
	MOVQ    R10, R13
	MOVQ    R9, DX

fourFurther:
	VBROADCASTSD (R13), Y12
	VMOVUPD      (AX), Y4
	VMOVUPD      (R11), Y8
	VSUBPD       (BX), Y4, Y4
	VSUBPD       (R12), Y8, Y8
	VADDPD       Y8, Y4, Y4
	VFMADD231PD  Y12, Y4, Y0
	ADDQ         $8, AX
	SUBQ         $8, BX
	ADDQ         R8, R11
	SUBQ         R8, R12
	ADDQ         $8, R13
	DECQ         DX
	JNZ          fourFurther
	VMOVUPD      Y0, (DI)
	ADDQ         $32, DI
	ADDQ         $32, SI
	SUBQ         $4, CX
	JGE          four

fourDone:
	ADDQ $4, CX
	JZ   done

one:
	VMOVSD (DI), X0
	LEAQ   8(SI), AX
	LEAQ   -8(SI), BX
	LEAQ   (SI)(R8*1), R11
	MOVQ   SI, R12
	SUBQ   R8, R12
	MOVQ   R10, R13
	MOVQ   R9, DX

oneFurther:
	VMOVSD      (AX), X4
	VMOVSD      (R11), X8
	VSUBSD      (BX), X4, X4
	VSUBSD      (R12), X8, X8
	VADDSD      X8, X4, X4
	VFMADD231SD (R13), X4, X0
	ADDQ        $8, AX
	SUBQ        $8, BX
	ADDQ        R8, R11
	SUBQ        R8, R12
	ADDQ        $8, R13
	DECQ        DX
	JNZ         oneFurther
	VMOVSD      X0, (DI)
	ADDQ        $8, DI
	ADDQ        $8, SI
	DECQ        CX
	JNZ         one

done:
	VZEROUPPER
	RET

// func increaseVector(line *float64, n int, by float64)
TEXT ·increaseVector(SB), NOSPLIT, $0-24
	MOVQ         line+0(FP), DI
	MOVQ         n+8(FP), CX
	VBROADCASTSD by+16(FP), Y0
	SUBQ         $16, CX
	JLT          tail

sixteen:
	VADDPD  (DI), Y0, Y1
	VADDPD  32(DI), Y0, Y2
	VADDPD  64(DI), Y0, Y3
	VADDPD  96(DI), Y0, Y4
	VMOVUPD Y1, (DI)
	VMOVUPD Y2, 32(DI)
	VMOVUPD Y3, 64(DI)
	VMOVUPD Y4, 96(DI)
	ADDQ    $128, DI
	SUBQ    $16, CX
	JGE     sixteen

tail:
	ADDQ $16, CX
	JZ   done

one:
	VADDSD (DI), X0, X1
	VMOVSD X1, (DI)
	ADDQ   $8, DI
	DECQ   CX
	JNZ    one

done:
	VZEROUPPER
	RET

// Command gen writes the vector functions of package reduce: the assembly of one level, and its Go declarations.
//
//	go run . -level avx2 -pkg reduce -out ../vectors_avx2_amd64.s -stubs ../vectors_avx2_amd64.go
package main

import (
	"flag"
	"log"

	. "github.com/mmcloughlin/avo/build"
)

func main() {
	name := flag.String("level", "", "avx2 or avx512")
	flag.Parse()
	ConstraintExpr("amd64")
	switch *name {
	case "avx2":
		avx2()
	case "avx512":
		avx512()
	default:
		log.Fatalf("gen: -level %q: allowed are avx2 and avx512", *name)
	}
	Generate()
}

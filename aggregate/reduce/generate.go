package reduce

//go:generate go run -C gen . -level avx2 -pkg reduce -out ../vectors_avx2_amd64.s -stubs ../vectors_avx2_amd64.go
//go:generate go run -C gen . -level avx512 -pkg reduce -out ../vectors_avx512_amd64.s -stubs ../vectors_avx512_amd64.go

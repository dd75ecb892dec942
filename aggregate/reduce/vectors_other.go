//go:build !amd64

package reduce

func withAVX2() *functions { return nil }

func withAVX512() *functions { return nil }

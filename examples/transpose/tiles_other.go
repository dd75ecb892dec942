//go:build !amd64

package main

// vectors returns nil: this processor has no such arithmetic.
func vectors() *arithmetic { return nil }

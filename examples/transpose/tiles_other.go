//go:build !amd64

package main

// vectors is nil: there are none for this processor.
func vectors() *arithmetic { return nil }

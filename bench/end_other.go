//go:build !unix

package main

import "os/exec"

// endGently leaves cmd as it is: its context kills it.
func endGently(*exec.Cmd) {}

//go:build !linux && !darwin

package main

import "runtime"

func processorName() string { return runtime.GOARCH }

func kernelRelease() string { return "" }

//go:build !linux && !darwin

package machine

import "runtime"

func processorName() string { return runtime.GOARCH }

func kernelRelease() string { return "" }

package machine

import (
	"runtime"
	"syscall"
)

func processorName() string {
	name, err := syscall.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return runtime.GOARCH
	}
	return name
}

func kernelRelease() string {
	release, _ := syscall.Sysctl("kern.osrelease")
	return release
}

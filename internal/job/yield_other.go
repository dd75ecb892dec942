//go:build !linux

package job

import "runtime"

// yieldToProcesses gives the processor to another goroutine, where there is no call
// to give it to another process.
func yieldToProcesses() { runtime.Gosched() }

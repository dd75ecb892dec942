package object_test

import (
	"fmt"
	"runtime"

	"github.com/onesided/rma/internal/object"
)

// A registered buffer is found while its object is alive, and deregistered when it is gone.
func Example() {
	over := make(chan string, 1)
	buffer := make([]byte, 1<<20)
	o, ok := object.Of(buffer[4096:8192], func(region string) { over <- region }, "region 1")
	fmt.Println("of Go's heap:", ok)
	fmt.Println("where it was:", o.Alive() == &buffer[4096])

	// The program drops the buffer, and the collector runs.
	runtime.KeepAlive(buffer)
	runtime.GC()
	fmt.Println("to be deregistered:", <-over)
	fmt.Println("gone:", o.Alive() == nil)
	// Output:
	// of Go's heap: true
	// where it was: true
	// to be deregistered: region 1
	// gone: true
}

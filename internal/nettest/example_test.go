package nettest_test

import (
	"fmt"
	"testing"

	"github.com/onesided/rma/internal/nettest"
)

// A test of a server whose host is cut off.
func ExampleNew() {
	test := func(t *testing.T) {
		network := nettest.New(t, 2)
		server := network.Command(0, "server", "-listen", network.Address(0).String())
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		network.Cut(0)
	}
	fmt.Printf("%T\n", test)
	// Output: func(*testing.T)
}

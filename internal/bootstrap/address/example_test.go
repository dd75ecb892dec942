package address_test

import (
	"fmt"
	"net/netip"

	"github.com/onesided/rma/internal/bootstrap/address"
)

// A host with a bridge for its containers is reached by its other interface.
func Example() {
	interfaces := []address.Interface{
		{Name: "lo", Up: true, Loopback: true, Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}},
		{Name: "docker0", Up: true, Addresses: []netip.Prefix{netip.MustParsePrefix("172.17.0.1/16")}},
		{Name: "ens5", Up: true, Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.2.3/20")}},
	}
	fmt.Println(address.Choose(interfaces))
	// Output: 10.1.2.3
}

package rails_test

import (
	"fmt"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/rails"
	"github.com/onesided/rma/verbs/sim"
)

// Two cards are one of twice the bandwidth.
func Example() {
	profile, err := sim.ByName("ndr-2024")
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := sim.New(profile, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	card := s.Open()
	device, err := rails.New(card, card.OpenRail())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = device.Close() }()
	fmt.Println(device.Attributes().Name)
	for _, d := range []verbs.Device{card, device} {
		fmt.Println(d.Costs().Bandwidth/1e9, "GB/s")
	}
	// Output:
	// sim:ndr-2024+sim:ndr-2024
	// 49 GB/s
	// 98 GB/s
}

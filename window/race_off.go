//go:build !race

package window

// raceOrder is nothing without the race detector.
type raceOrder struct{}

func (raceOrder) orderedAs(*raceOrder) {}

func (raceOrder) tookStripe()   {}
func (raceOrder) givingStripe() {}

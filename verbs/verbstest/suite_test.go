package verbstest

import "testing"

// A card without a defect passes.
func TestCard(t *testing.T) {
	Run(t, Config{Open: newNetwork("").Open})
}

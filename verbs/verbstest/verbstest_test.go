package verbstest_test

import (
	"testing"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/verbs/verbstest"
)

// The device for goroutines is the suite's first real one.
func TestFabric(t *testing.T) {
	fabric := shm.NewFabric()
	verbstest.Run(t, verbstest.Config{
		Open: func(t testing.TB) verbs.Device {
			device, err := fabric.Open()
			if err != nil {
				t.Fatal(err)
			}
			return device
		},
		Driven: true,
	})
}

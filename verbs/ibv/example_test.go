package ibv_test

import (
	"errors"
	"fmt"

	"github.com/onesided/rma/verbs/ibv"
)

func ExampleOpen() {
	device, err := ibv.Open(ibv.FromEnvironment())
	if errors.Is(err, errors.ErrUnsupported) {
		// The program was built without it, or there is no card: the error says what to do.
		err = nil
	} else if err == nil {
		err = device.Close()
	}
	fmt.Println(err)
	// Output: <nil>
}

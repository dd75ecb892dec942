package epoch_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/onesided/rma/epoch"
)

// A rank opens an epoch to one target. An operation on another one is rejected with the reason.
func Example() {
	s := epoch.New(0, 4)
	if err := s.BeginLock(epoch.Shared, 1); err != nil {
		log.Fatal(err)
	}
	// Here the lock would be taken.
	s.EndLock(1)
	fmt.Println(s.Open(1), s.Open(2))
	err := s.Reject("Put", 2)
	fmt.Println(errors.Is(err, epoch.ErrNoEpoch))
	fmt.Println(err)
	// Output:
	// true false
	// true
	// epoch: rank 0: Put on rank 2: no access epoch to the target, the locks are of other ranks: rank 1 is locked (shared); Lock the target too
}

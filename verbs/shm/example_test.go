package shm_test

import (
	"fmt"
	"log"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
)

// Two ranks of one process: one maps memory of the other and writes to it.
func Example() {
	fabric := shm.NewFabric()
	origin, err := fabric.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer origin.Close()
	target, err := fabric.Open()
	if err != nil {
		log.Fatal(err)
	}
	defer target.Close()

	memory, err := target.AllocateMemory(64)
	if err != nil {
		log.Fatal(err)
	}
	region, err := target.RegisterMemory(memory, verbs.LocalWrite|verbs.RemoteWrite)
	if err != nil {
		log.Fatal(err)
	}
	neighbor, err := origin.Neighbor(target.Address())
	if err != nil {
		log.Fatal(err)
	}
	mapped, err := neighbor.Map(region.Remote())
	if err != nil {
		log.Fatal(err)
	}
	copy(mapped, "by a store")
	fmt.Println(string(memory[:10]))
	// Output: by a store
}

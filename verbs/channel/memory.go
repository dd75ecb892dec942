package channel

import (
	"errors"

	"github.com/onesided/rma/verbs"
)

// RingMemory allocates and registers memory, for a ring or for the copy of a peer's ring.
func RingMemory(device verbs.Device, bytes int, access verbs.Access) (verbs.MemoryRegion, error) {
	memory, err := device.AllocateMemory(bytes)
	if err != nil {
		return nil, err
	}
	region, err := device.RegisterMemory(memory, access)
	if err != nil {
		return nil, errors.Join(err, device.FreeMemory(memory))
	}
	return region, nil
}

// FreeRing frees memory of RingMemory, or does nothing for nil. The queue pair has been closed. If the card does not
// deregister the memory, it is not freed.
func FreeRing(device verbs.Device, region verbs.MemoryRegion) error {
	if region == nil {
		return nil
	}
	memory := region.Memory()
	if err := region.Deregister(); err != nil {
		return err
	}
	return device.FreeMemory(memory)
}

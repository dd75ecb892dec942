package channel

import (
	"errors"

	"github.com/onesided/rma/verbs"
)

// RingMemory makes memory that a device knows, for a ring or for what is like that of a peer.
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

// FreeRing gives memory of RingMemory back, if there is any. Its queue pair has been closed. What the card
// does not let go of stays.
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

package regcache_test

import (
	"fmt"
	"time"

	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/verbs"
)

// A buffer is copied until it has been used so often that to register it is likely to pay.
func Example() {
	costs := regcache.Costs{
		Costs:    verbs.Costs{Register: 60 * time.Microsecond, CopyBandwidth: 2e9},
		LookUp:   50 * time.Nanosecond,
		PageSize: 4096,
	}
	const address, size = 0xc000100000, 4096
	regions := regcache.NewPolicy[string](costs.Extra, regcache.Quarter, regcache.Limits{Bytes: 1 << 30, Regions: 1000})
	copied, registered := 0, 0
	for range 100 {
		entry, decision := regions.Use(address, size)
		switch decision {
		case regcache.Copy:
			copied++
			continue
		case regcache.Register:
			registered++
			entry = regions.Add(address, address+size, "what the card calls it")
		}
		// The card reads the buffer, and then the entry is not in use any more.
		regions.Release(entry)
	}
	fmt.Printf("pays from %d uses on; %d times copied, %d time registered, %d times found\n", costs.Uses(size), copied, registered, regions.Stats().Hits)
	// Output: pays from 31 uses on; 6 times copied, 1 time registered, 93 times found
}

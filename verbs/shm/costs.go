package shm

import (
	"sync"
	"time"

	"github.com/onesided/rma/internal/cpucopy"
	"github.com/onesided/rma/verbs"
)

// measuredCosts measures the cost of a copy, once per process. The rest of a transfer through shared memory is a few
// stores. Registering costs the same for any size.
var measuredCosts = sync.OnceValue(func() verbs.Costs {
	from, to := make([]byte, 64<<10), make([]byte, 64<<10)
	best := func(n int) time.Duration {
		const copies = 16
		fastest := time.Duration(1<<63 - 1)
		for range 5 {
			start := time.Now()
			for range copies {
				cpucopy.Copy(to[:n], from[:n])
			}
			fastest = min(fastest, time.Since(start)/copies)
		}
		return max(fastest, 1)
	}
	small, large := best(8), best(len(from))
	bandwidth := float64(len(from)) / large.Seconds()
	return verbs.Costs{
		Post: 50 * time.Nanosecond, Gap: 50 * time.Nanosecond,
		Latency: 100 * time.Nanosecond, ReadLatency: 100 * time.Nanosecond,
		Bandwidth: bandwidth, DuplexBandwidth: 2 * bandwidth,
		CopyLatency: small, CopyBandwidth: bandwidth,
		Register: 100 * time.Nanosecond, Deregister: 100 * time.Nanosecond,
	}
})

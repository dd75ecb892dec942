package registration

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/verbs"
)

// countedRegion counts how often it is deregistered.
type countedRegion struct {
	verbs.MemoryRegion
	ends int
}

func (r *countedRegion) Deregister() error {
	r.ends++
	return nil
}

func newPolicy() *regcache.Policy[*kept] {
	extra := func(int) (using, moving, registering float64) { return 0, 1, 1 }
	return regcache.NewPolicy[*kept](extra, regcache.Always, regcache.Limits{Bytes: 1 << 20, Regions: 10})
}

// A buffer at the addresses of a dead region is registered if it is used often enough.
func TestPeekPastDeadRegion(t *testing.T) {
	k := &cache{policy: newPolicy()}
	memory := make([]byte, 1000)
	from := bounds.Address(memory)
	_, decision := k.policy.Use(from, len(memory))
	require.Equal(t, regcache.Register, decision)
	dead := new(kept)
	dead.entry = k.policy.Add(from, from+uint64(len(memory)), dead)
	k.policy.Release(dead.entry)
	r, decision := k.peek(memory)
	require.Nil(t, r)
	require.Equal(t, regcache.Register, decision)
	require.True(t, k.untidy.Load(), "the dead region is to be deregistered")
}

// A region that is released while evictAll finds nothing to deregister ends all the same.
func TestEvictAllLosesNoRegion(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	k := &cache{policy: newPolicy()}
	region := new(countedRegion)
	r := &kept{cache: k, region: region}
	r.entry = k.policy.Add(0, 100, r)

	// Both wait for the mutex for so long (1 ms) that it is handed from one to the other: after evictAll has given it back the
	// release runs first, before evictAll goes on.
	k.mu.Lock()
	begun := time.Now()
	var both sync.WaitGroup
	both.Go(k.evictAll)
	await.Parked(t, "(*cache).evictAll", 1)
	both.Go(r.release)
	await.Parked(t, "(*kept).release", 1)
	for time.Since(begun) < 10*time.Millisecond { // computes
		runtime.Gosched()
	}
	k.mu.Unlock()
	k.mu.Lock()
	// evictAll tries in vain, and asks for the mutex to be handed over.
	for range 10 {
		runtime.Gosched()
	}
	k.mu.Unlock()
	both.Wait()
	k.tidy()
	require.Equal(t, 1, region.ends)
}

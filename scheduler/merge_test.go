package scheduler_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/scheduler"
)

// nobody is what no put of the test writes.
const nobody = 0xff

// put writes what operation i of a queue writes: bytes that tell which it is.
func put(memory []byte, i int, o *scheduler.Operation, base uint64) {
	for at := range o.Bytes {
		memory[o.Offset-base+uint64(at)] = byte(i)
	}
}

// carriedOut does the puts of a plan's steps as one each.
func carriedOut(operations []scheduler.Operation, plan *scheduler.Plan, memory []byte) {
	for _, s := range plan.Steps {
		base := operations[s.First].Offset
		if operations[s.First].Kind != aggregate.Put {
			continue
		}
		one := make([]byte, s.Bytes)
		for at := range one {
			one[at] = nobody
		}
		for i := range int(s.Count) {
			put(one, int(s.First)+i, &operations[int(s.First)+i], base)
		}
		copy(memory[base:], one)
	}
}

// TestMergedPutsKeepTheirOrder carries out plans of small puts, many of which overlap, among
// other operations: the last put to each place counts, as in program order. Every third queue goes in messages and begins
// with puts one after the other, of which some have to be merged.
func TestMergedPutsKeepTheirOrder(t *testing.T) {
	for seed := range testsize.Samples(t, 3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		merges := seed%3 == 0
		var q scheduler.Queue
		want, got := make([]byte, 256), make([]byte, 256)
		place := uint64(0)
		for i := range 2 + r.IntN(40) {
			kind, bytes := aggregate.Put, 1+r.IntN(23) // so that nothing is direct
			switch {
			case merges && i < 2:
				place, bytes = uint64(i), 1
			case r.IntN(8) == 0:
				kind = aggregate.Get + aggregate.Kind(r.IntN(5))
			}
			if r.IntN(4) == 0 && i > 1 {
				place = r.Uint64N(200)
			}
			o := q.Add(kind, bytes)
			o.Offset = place
			if kind == aggregate.Put {
				put(want, i, o, 0)
			}
			place = min(place+r.Uint64N(uint64(o.Bytes)+2), 200)
		}
		scheme := scheduler.Scheme(r.IntN(int(scheduler.All)+1)) | scheduler.Pack | scheduler.Merge
		c := scheduler.Conditions{Costs: costs, Scheme: scheme, Direct: r.IntN(2) > 0 && !merges, Packet: []int{40, 64, packet}[r.IntN(3)]}
		var plan scheduler.Plan
		scheduler.NewPlanner(c).Plan(q.Operations, scheduler.End, &plan)
		carriedOut(q.Operations, &plan, got)
		require.Equal(t, want, got, "seed %d, %+v: %s", seed, c, written(&plan))
		require.True(t, !merges || len(plan.Steps) < len(q.Operations), "seed %d, %+v: nothing is merged: %s", seed, c, written(&plan))
	}
}

//go:build !race

package registration_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/registration"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// The race detector allocates.

// Nothing is allocated for memory that is known, kept, or copied.
func TestNothingIsAllocated(t *testing.T) {
	memory := make([]byte, 1<<20)
	var holds [64]registration.Hold
	for _, protocol := range []transfer.Protocol{transfer.Copy, transfer.CopyPipeline, transfer.Superpipeline, transfer.Cache, transfer.CachingPipeline} {
		c := cardOver(newDevice(t), transfer.Of(protocol))
		for _, bytes := range []int{100, 200, 8 << 10, 1 << 20} {
			for _, write := range []bool{true, false} {
				require.Zero(t, testing.AllocsPerRun(50, func() {
					held := 0
					c.Use(memory[:bytes])
					plan := c.Plan(memory[:bytes], write)
					if hold, ok := plan.Whole(); ok {
						hold.Release()
					}
					for plan.More() {
						piece := plan.Next()
						if !piece.Copied {
							holds[held] = piece.Hold
							held++
							continue
						}
						b, _, err := c.CopyBuffer(len(piece.Memory), false)
						if err != nil || b.Memory == nil {
							t.Error("no stage:", err)
							return
						}
						b.Release()
					}
					for i := range holds[:held] {
						holds[i].Release()
					}
					c.Tidy()
				}), "%v, %d bytes, write %t", protocol, bytes, write)
			}
		}
	}
	r := over(newDevice(t), configOf(0))
	_, err := r.Register(memory, verbs.LocalWrite)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(50, func() {
		if r.Card(registration.Network).Key(memory[5:100]) == 0 {
			t.Error("no key")
		}
	}))
}

package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/verbs"
)

// What packing saves is less by what it costs to copy.
func TestSavedCountsCopies(t *testing.T) {
	c := costs
	c.CopyLatency = 600 * time.Nanosecond // packing one of 8 bytes saves 2000-3*600-4 = 196 ns
	var plan scheduler.Plan
	scheduler.NewPlanner(scheduler.Conditions{Costs: c, Scheme: scheduler.All, Direct: true, Packet: packet}).Plan(queued(t, "10*p8").Operations, scheduler.Nothing, &plan)
	require.Equal(t, "0 1 2 3 4 5 6 7 8 9", written(&plan)) // 10*196 < Serve = 10000
}

// Where it is not known what it costs to start, operations wait all the same.
func TestPostUnknown(t *testing.T) {
	p := scheduler.NewPlanner(scheduler.Conditions{Costs: verbs.Costs{Bandwidth: 1e9}, Scheme: scheduler.All, Packet: packet})
	require.False(t, p.Due(queued(t, "p8")))
}

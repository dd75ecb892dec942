package scheduler_test

import (
	"fmt"
	"time"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/verbs"
)

// An epoch of three puts each takes twice as long where operations wait. The learner finds
// out.
func ExampleLearner() {
	planner := scheduler.NewPlanner(scheduler.Conditions{Scheme: scheduler.All, Packet: 8 << 10})
	learner := scheduler.NewLearner(scheduler.All)
	var queue scheduler.Queue
	var plan scheduler.Plan
	now := time.Duration(0)
	clock := func() time.Duration { return now }
	for range 2000 {
		following := planner.With(learner.Scheme(), learner.Pattern())
		for i := range 3 {
			queue.Add(aggregate.Put, 8).Offset = uint64(64 * i)
		}
		following.Plan(queue.Operations, scheduler.End, &plan)
		// Here the plan is carried out, and its end awaited.
		queue.Drop(len(queue.Operations))
		now += 5 * time.Microsecond
		if learner.Scheme()&scheduler.Defer != 0 {
			now += 5 * time.Microsecond
		}
		learner.End(following.Ended(&queue), clock)
	}
	fmt.Println("operations wait:", learner.Scheme()&scheduler.Defer != 0)
	// Output:
	// operations wait: false
}

// An epoch of two small puts to neighboring places, a large put, a large get and a small
// one, and the plan for it.
func Example() {
	planner := scheduler.NewPlanner(scheduler.Conditions{
		Costs: verbs.Costs{
			Post: time.Microsecond, Gap: time.Microsecond, Serve: 10 * time.Microsecond,
			Bandwidth: 1e9, CopyLatency: 100 * time.Nanosecond, CopyBandwidth: 4e9,
		},
		Scheme: scheduler.All, Direct: true, Packet: 8 << 10,
	})
	var queue scheduler.Queue
	queue.Add(aggregate.Put, 8).Offset = 64
	queue.Add(aggregate.Put, 8).Offset = 72
	queue.Add(aggregate.Put, 1<<20).Offset = 1 << 20
	queue.Add(aggregate.Get, 1<<20).Offset = 2 << 20
	queue.Add(aggregate.Get, 8).Offset = 128

	var plan scheduler.Plan
	planner.Plan(queue.Operations, scheduler.End, &plan)
	for _, step := range plan.Steps {
		way := "direct"
		if step.Packed {
			way = "packed"
		}
		fmt.Println(way, "operations from", step.First, "on:", step.Count, "of", step.Bytes, "bytes")
	}
	// Output:
	// packed operations from 4 on: 1 of 8 bytes
	// direct operations from 3 on: 1 of 1048576 bytes
	// direct operations from 2 on: 1 of 1048576 bytes
	// packed operations from 0 on: 2 of 16 bytes
}

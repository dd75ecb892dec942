package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/scheduler"
)

// epoch queues, plans and drops operations, as a window does in each epoch.
func epoch(p *scheduler.Planner, q *scheduler.Queue, plan *scheduler.Plan, like []scheduler.Operation) {
	for i := range like {
		*q.Add(like[i].Kind, like[i].Bytes) = like[i]
		p.Due(q)
	}
	p.Plan(q.Operations, scheduler.End, plan)
	q.Drop(len(q.Operations))
}

func TestNothingIsAllocated(t *testing.T) {
	like := queued(t, "100*p8 100*+p8 50*g8 20*p9000 20*g9000 50*a8 n 10*f8 10*s8").Operations
	for _, scheme := range []scheduler.Scheme{scheduler.All, without(scheduler.GetsFirst), 0} {
		for _, direct := range []bool{false, true} {
			p := planner(scheme, direct)
			var q scheduler.Queue
			var plan scheduler.Plan
			require.Zero(t, testing.AllocsPerRun(10, func() { epoch(p, &q, &plan, like) }))
		}
	}
}

// BenchmarkPlan plans 1000 puts of 8 bytes, to places far from each other and to
// neighboring ones.
func BenchmarkPlan(b *testing.B) {
	for _, places := range []struct{ name, script string }{{"scattered", "1000*p8"}, {"neighbors", "p8 999*+p8"}} {
		b.Run(places.name, func(b *testing.B) {
			operations := queued(b, places.script).Operations
			p := planner(scheduler.All, true)
			var plan scheduler.Plan
			b.ReportAllocs()
			for b.Loop() {
				p.Plan(operations, scheduler.End, &plan)
			}
			perOperation(b, len(operations))
		})
	}
}

// BenchmarkEpoch queues, plans and drops 1000 puts of 8 bytes.
func BenchmarkEpoch(b *testing.B) {
	like := queued(b, "1000*p8").Operations
	p := planner(scheduler.All, true)
	var q scheduler.Queue
	var plan scheduler.Plan
	epoch(p, &q, &plan, like)
	b.ReportAllocs()
	for b.Loop() {
		epoch(p, &q, &plan, like)
	}
	perOperation(b, len(like))
}

func perOperation(b *testing.B, operations int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*operations), "ns/operation")
}

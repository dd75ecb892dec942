package jobtest

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

const (
	// awake is the share of a core that a process may use while its ranks wait. The goal is 0.02, and one that spins uses
	// all that it gets.
	awake = 0.2
	// mostRest is a span in which nothing else can make a rank that sleeps seem awake.
	mostRest = 2 * time.Second
)

// Rests ends the body unless a rank, and so its process, sleeps while it waits. All ranks call Rests. It has each call
// begin, for what comes before the wait, and wait, which is to last for about a span. The spans double until the rank has
// used little of a core in one, because a collection of garbage, or another machine on the same processor, can seem to be
// use of it.
func (s *Script) Rests(rank int, what string, begin func(), wait func(span time.Duration)) {
	again := []bool{true}
	for span := time.Duration(testsize.N(80)) * time.Millisecond; again[0]; span *= 2 {
		begin()
		s.Barrier()
		begun, before := time.Now(), s.processorTime()
		wait(span)
		used := float64(s.processorTime()-before) / float64(time.Since(begun))
		again[0] = used > awake
		s.Check(s.World.Rank() != rank || !again[0] || span < mostRest,
			"%s used %.1f %% of a core while it waited for %v", what, 100*used, span)
		s.OK(world.Broadcast(s.Ctx, s.World, rank, again))
	}
}

// processorTime is what this process has used.
func (s *Script) processorTime() time.Duration {
	var usage unix.Rusage
	s.OK(unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

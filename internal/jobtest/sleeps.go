package jobtest

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

const (
	// awake is the greatest share of a core that a process may use while its ranks wait. A process that spins uses a
	// whole core.
	awake = 0.2
	// longestSpan is a span in which nothing else can make a sleeping rank seem awake.
	longestSpan = 2 * time.Second
)

// Sleeps ends the body unless the process of a rank sleeps while the rank waits. All ranks must call Sleeps. The rank
// calls begin, for the steps before the wait, and then wait, which must last for about span. The spans double until
// the rank has used little of a core in one. In a short span a garbage collection, or another machine on the same
// processor, can look like use of the core.
func (s *Script) Sleeps(rank int, what string, begin func(), wait func(span time.Duration)) {
	again := []bool{true}
	for span := time.Duration(testsize.N(80)) * time.Millisecond; again[0]; span *= 2 {
		begin()
		s.Barrier()
		begun, before := time.Now(), s.processorTime()
		wait(span)
		used := float64(s.processorTime()-before) / float64(time.Since(begun))
		again[0] = used > awake
		s.Check(s.World.Rank() != rank || !again[0] || span < longestSpan,
			"%s used %.1f %% of a core while it waited for %v", what, 100*used, span)
		s.OK(world.Broadcast(s.Ctx, s.World, rank, again))
	}
}

// processorTime returns the processor time that this process has used.
func (s *Script) processorTime() time.Duration {
	var usage unix.Rusage
	s.OK(unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

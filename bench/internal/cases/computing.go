package cases

import (
	"cmp"
	"context"
	"time"

	"github.com/onesided/rma/bench/internal/stats"
)

// The case of a target that computes, as in peers/mpi_rma.c.

const (
	// computing is how long the target computes in each loop.
	computing = time.Second
	// headStart is how long the origin waits before its first put. The target's work for the barrier is over by then.
	headStart = 10 * time.Millisecond
	// watched is how long after that the origin begins new puts. The target computes longer than that, and a little
	// more if that was too short.
	watched     = 500 * time.Millisecond
	mostSamples = 50000
	// paceTrials is the number of trials of arithmeticPace.
	paceTrials = 50
)

// putsWhileComputing times puts one by one, with their flushes, to a target that neither calls the library nor
// yields. A loop's value is their median. A put that needs calls of the target takes until the target enters the
// barrier.
func putsWhileComputing(ctx context.Context, r *Rank, b *Buffers, n int) ([]float64, error) {
	compute, most := r.World.Compute, mostSamples/VirtualIterations
	if !r.Virtual {
		state := uint64(1)
		pace := arithmeticPace(&state, Shortened(paceTrials, r.Shorten))
		compute, most = func(d time.Duration) { arithmetic(&state, pace.iterations(d)) }, mostSamples
	}
	most = Shortened(most, r.Shorten)
	away, watching, busy := Shortened(headStart, r.Shorten), Shortened(watched, r.Shorten), Shortened(computing, r.Shorten)
	values := make([]float64, 0, r.Repeat)
	times := make([]float64, 0, most)
	for range r.Repeat {
		if r.World.Rank() == 0 {
			if err := Loop(ctx, b, putFlush, n, Shortened(100, r.Shorten)); err != nil {
				return nil, err
			}
		}
		if err := r.World.Barrier(ctx); err != nil {
			return nil, err
		}
		var err error
		switch start := r.World.Now(); r.World.Rank() {
		case 0:
			compute(away)
			times, err = r.putTimes(ctx, b, n, watching, times[:0])
		case 1:
			compute(busy)
			// The pace is too low if all of its trials were disturbed.
			for r.World.Now()-start < away+watching {
				compute(watching)
			}
		}
		if err != nil {
			return nil, err
		}
		if err := r.World.Barrier(ctx); err != nil {
			return nil, err
		}
		if r.World.Rank() == 0 {
			values = append(values, stats.Median(times))
		} else {
			values = append(values, 0)
		}
	}
	return values, nil
}

// putTimes appends to times, up to its capacity, the microseconds of each put that begins within the given time, and
// of at least one.
func (r *Rank) putTimes(ctx context.Context, b *Buffers, n int, within time.Duration, times []float64) ([]float64, error) {
	end := r.World.Now() + within
	for {
		before := r.World.Now()
		if err := putFlush(ctx, b, n); err != nil {
			return times, err
		}
		after := r.World.Now()
		times = append(times, (after-before).Seconds()*1e6)
		if len(times) == cap(times) || after > end {
			return times, nil
		}
	}
}

// computedPiece is how long a simulated target computes between two checks whether the origin has finished.
const computedPiece = 50 * time.Microsecond

// TargetDelay runs a loop on rank 0 while simulated rank 1 computes. It returns on rank 1 how much longer the computation
// takes beside the loop than beside a rank 0 that computes for as long.
func (r *Rank) TargetDelay(ctx context.Context, b *Buffers, f Step, n, iterations int) (time.Duration, error) {
	var took time.Duration
	var delays [3]time.Duration
	for i, origin := range [...]func() error{
		// Rank 1 handles what is left of earlier calls.
		func() error { return nil },
		func() error {
			start := r.World.Now()
			err := Loop(ctx, b, f, n, iterations)
			took = r.World.Now() - start
			return err
		},
		func() error {
			r.World.Compute(took)
			return nil
		},
	} {
		var err error
		if delays[i], err = r.delay(ctx, b, origin); err != nil {
			return 0, err
		}
	}
	// Without work for rank 1 the two differ by a poll, either way.
	return max(delays[1]-delays[2], 0), nil
}

// delay calls origin on rank 0 while rank 1 computes. It returns on rank 1 how much longer that took than the
// computation alone.
func (r *Rank) delay(ctx context.Context, b *Buffers, origin func() error) (time.Duration, error) {
	const slot = 0
	switch r.World.Rank() {
	case 0:
		if err := origin(); err != nil {
			return 0, err
		}
		if err := b.bytes.PutNotify(nil, 1, 0, slot); err != nil {
			return 0, err
		}
		return 0, b.bytes.Flush(ctx, 1)
	case 1:
		start, computed := r.World.Now(), time.Duration(0)
		for {
			finished, err := b.bytes.TestNotify(slot, 1)
			if err = cmp.Or(err, ctx.Err()); err != nil || finished {
				return r.World.Now() - start - computed, err
			}
			r.World.Compute(computedPiece)
			computed += computedPiece
		}
	}
	return 0, nil
}

// A pace is a number of iterations of arithmetic in a second.
type pace float64

// arithmeticPace returns the best of many short trials, so that a computation planned by it takes at least as long as
// intended. Other programs cannot disturb all of the trials.
func arithmeticPace(state *uint64, trials int) pace {
	const trial = 1 << 19
	var best pace
	for range trials {
		start := time.Now()
		arithmetic(state, trial)
		best = max(best, pace(trial/time.Since(start).Seconds()))
	}
	return best
}

func (p pace) iterations(d time.Duration) int { return int(float64(p) * d.Seconds()) }

// arithmetic is a loop without a call, so the scheduler cannot preempt it at one. Each iteration needs the previous
// one and state receives the last, so the compiler cannot leave any out.
func arithmetic(state *uint64, iterations int) {
	x := *state
	for range iterations {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	*state = x
}

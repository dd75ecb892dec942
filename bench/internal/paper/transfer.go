package paper

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/program"
	place "github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A transferCase measures how buffers get to the card, on rank 0 of several ranks that run it in virtual time. The
// windows pack nothing, so that each operation goes by RDMA.
type transferCase struct {
	ranks int
	// bytes is the size of each rank's part of the window.
	bytes int
	// locked is set if all ranks lock all windows meanwhile. Otherwise there are fences.
	locked bool
	body   func(ctx context.Context, s *transferStand) ([]float64, error)
}

// A transferStand is what a rank has for a transferCase.
type transferStand struct {
	w      *world.World
	window *window.Window[byte]
	curve  *curve
	// regions are the registrations of buffers by the program.
	regions []*job.Region
}

// moved returns the curve of one protocol, or of all if none is named.
func moved(short, name string, protocols ...transfer.Protocol) curve {
	c := curve{short: short, name: name, tuning: only(scheduler.Defer)}
	if len(protocols) > 0 {
		c.tuning.NoProtocols = transfer.All &^ transfer.Of(protocols...)
	}
	return c
}

// known returns the curve of buffers that the program has registered.
func known(short, name string) curve {
	c := moved(short, name)
	c.registered = true
	return c
}

// simulator returns a simulator with the figure's cards.
func (f *Figure) simulator(o *Options) (*sim.Simulator, error) {
	card, err := sim.ByName(f.profile)
	if err != nil {
		return nil, err
	}
	return sim.New(card, o.Seed)
}

// simulate returns the values of rank 0.
func (t *transferCase) simulate(ctx context.Context, f *Figure, c *curve, o *Options) (values []float64, err error) {
	s, err := f.simulator(o)
	if err != nil {
		return nil, err
	}
	err = program.WithTimeout(ctx, o.Timeout, func(ctx context.Context) error {
		return device.Simulate(ctx, s, t.ranks, func(ctx context.Context, w *world.World) error {
			stand := &transferStand{w: w, curve: c}
			var err error
			if stand.window, err = window.Allocate[byte](ctx, w, t.bytes); err != nil {
				return err
			}
			enter := func() error { return stand.window.Fence(ctx) }
			leave := func() error { return stand.window.Fence(ctx, window.NoSucceed) }
			if t.locked {
				enter = func() error { return stand.window.LockAll(ctx) }
				leave = func() error { return stand.window.UnlockAll(ctx) }
			}
			if err := enter(); err != nil {
				return err
			}
			measured, err := t.body(ctx, stand)
			if err != nil {
				return err
			}
			if err := leave(); err != nil {
				return err
			}
			if w.Rank() == 0 {
				values = measured
			}
			return stand.close()
		}, c.tuned())
	})
	return values, err
}

// buffers returns pieces of one array, a stride apart. The program registers it if the curve says so. The array
// begins at a multiple of 1 MiB. So pieces that are kept end with one of their length, and figures do not depend on
// the place of the array.
func (s *transferStand) buffers(count, bytes, stride int) ([][]byte, error) {
	const align = 1 << 20
	bytesOfAll := (count-1)*stride + bytes
	array := make([]byte, bytesOfAll+align)
	array = array[-place.Address(array)%align:][:bytesOfAll:bytesOfAll]
	if s.curve.registered {
		r, err := job.Of(s.w).Register(array, verbs.LocalWrite)
		if err != nil {
			return nil, err
		}
		s.regions = append(s.regions, r)
	}
	all := make([][]byte, count)
	for i := range all {
		all[i] = array[i*stride:][:bytes:bytes]
	}
	return all, nil
}

func (s *transferStand) close() error {
	err := s.window.Close()
	for _, r := range s.regions {
		if failed := r.Deregister(); err == nil {
			err = failed
		}
	}
	return err
}

// timed returns the time of one of iterations calls of iterate.
func (s *transferStand) timed(iterations int, iterate func() error) (time.Duration, error) {
	if iterations == 0 {
		return 0, nil
	}
	begun := s.w.Now()
	for range iterations {
		if err := iterate(); err != nil {
			return 0, err
		}
	}
	return (s.w.Now() - begun) / time.Duration(iterations), nil
}

func inMicroseconds(d time.Duration) float64 { return d.Seconds() * 1e6 }

// valueAt returns a curve's value at one of the xs, or NaN at others.
func (p *Plot) valueAt(short string, x int) float64 {
	c := slices.IndexFunc(p.Curves, func(c measuredCurve) bool { return c.Short == short })
	i := slices.Index(p.X, x)
	if c < 0 || i < 0 {
		return math.NaN()
	}
	return p.Curves[c].Values[i]
}

// eachX measures a case at each of the xs of a figure, each with separate ranks.
func eachX(at func(x int) transferCase) measurement {
	return func(ctx context.Context, f *Figure, c *curve, o *Options) ([]float64, error) {
		var values []float64
		for _, x := range f.xs {
			one := at(x)
			v, err := one.simulate(ctx, f, c, o)
			if err != nil {
				return nil, err
			}
			values = append(values, v...)
		}
		return values, nil
	}
}

// thereAndBack puts a buffer and notifies the other rank, which then does the same.
func (s *transferStand) thereAndBack(ctx context.Context, buffer, own []byte) error {
	put := func(other int) error {
		if err := s.window.PutNotify(buffer, other, 0, 0); err != nil {
			return err
		}
		return s.window.Flush(ctx, other)
	}
	if s.w.Rank() == 0 {
		if err := put(1); err != nil {
			return err
		}
	}
	if err := s.window.WaitNotify(ctx, 0, 1); err != nil {
		return err
	}
	if own != nil {
		job.Of(s.w).Device().Copy(own, s.window.Local()[:len(own)])
	}
	if s.w.Rank() == 1 {
		return put(0)
	}
	return nil
}

// trips returns half the times of exchanges with a buffer that is used count times, in seconds.
func (s *transferStand) trips(ctx context.Context, n, count int) ([]float64, error) {
	var own []byte
	if s.curve.copiesOut {
		own = make([]byte, n)
	}
	var took []float64
	// The first trips, with another buffer, make connections and register the library's own memory.
	for _, iterations := range []int{warmTrips, count} {
		buffers, err := s.buffers(1, n, n)
		if err != nil {
			return nil, err
		}
		took = took[:0]
		for range iterations {
			one, err := s.timed(1, func() error { return s.thereAndBack(ctx, buffers[0], own) })
			if err != nil {
				return nil, err
			}
			took = append(took, one.Seconds()/2)
		}
	}
	return took, nil
}

// warmTrips are enough for everything that is made once.
const warmTrips = 3

// bandwidthAt measures the bandwidth in both directions, at the first or the best of some trips.
func bandwidthAt(trips int) measurement {
	return eachX(func(n int) transferCase {
		return transferCase{ranks: 2, bytes: n, locked: true, body: func(ctx context.Context, s *transferStand) ([]float64, error) {
			took, err := s.trips(ctx, n, trips)
			if err != nil {
				return nil, err
			}
			one := slices.Min(took)
			if s.curve.first {
				one = took[0]
			}
			return []float64{float64(n) / one / 1e6}, nil
		}}
	})
}

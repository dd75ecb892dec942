package job_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/world"
)

// byAlgorithm has collectives done by one algorithm.
func byAlgorithm(a tuning.Algorithm) world.Option {
	return job.Tune(func(t *tuning.Tuning) { t.Algorithm = a })
}

// algorithmNames are those of algorithms, in an order.
var algorithmNames = []string{"by cost", "plain", "short", "long"}

var algorithms = map[string]tuning.Algorithm{"by cost": tuning.ByCost, "plain": tuning.Plain, "short": tuning.Short, "long": tuning.Long}

// everyWay makes every call with several roots and lengths: none, fewer than ranks, odd, long.
func everyWay(s *script) {
	for _, k := range []int{0, 1, 5, 67} {
		for _, root := range []int{0, s.n - 1} {
			for _, call := range longs.calls(s, root, k) {
				call()
			}
		}
	}
	for _, call := range colors.calls(s, s.n/2, 1001) {
		call()
	}
	for _, call := range planes.calls(s, s.n/2, 601) {
		call()
	}
}

// Every collective gives what it promises whatever the way in which it is done and the number of
// ranks. From 6 ranks on the ways take turns, and from 17 the numbers of ranks.
func TestEveryAlgorithm(t *testing.T) {
	busy.Acquire(t)
	most := 33
	if testsize.Race {
		most = 9
	}
	for i, name := range algorithmNames {
		t.Run(name, func(t *testing.T) {
			for n := 1; n <= most; n++ {
				if n < 6 || n < 17 && testsize.Turn(i+n, 4) || testsize.Turn(i+n, 16) {
					require.NoError(t, world.Run(t.Context(), n, scripted(everyWay), byAlgorithm(algorithms[name])), "%d ranks", n)
				}
			}
		})
	}
}

// So it does without cells, and over links where there could be pipes.
func TestEveryWayWithout(t *testing.T) {
	busy.Acquire(t)
	for name, options := range map[string][]world.Option{
		"cells":          {job.Tune(func(t *tuning.Tuning) { t.NoCells = true })},
		"pipes":          {job.Tune(func(t *tuning.Tuning) { t.NoPipes = true })},
		"cells or pipes": {job.Tune(func(t *tuning.Tuning) { t.NoCells = true }), job.Tune(func(t *tuning.Tuning) { t.NoPipes = true })},
	} {
		for _, n := range []int{2, 3, 8} {
			require.NoError(t, world.Run(t.Context(), n, scripted(everyWay), options...), "without %s, %d ranks", name, n)
		}
	}
}

func TestEveryAlgorithmInVirtualTime(t *testing.T) {
	busy.Acquire(t)
	for i, name := range algorithmNames {
		for k, n := range []int{2, 6, 13, 40} {
			if n > 6 && !testsize.Turn(i+k, len(algorithmNames)) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d ranks", name, n), func(t *testing.T) {
				require.NoError(t, world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), n, scripted(everyWay), byAlgorithm(algorithms[name])))
			})
		}
	}
}

// Over TCP, and by ranks whose calls are cut short.
func init() {
	for name, algorithm := range algorithms {
		with := func() ([]world.Option, error) { return []world.Option{byAlgorithm(algorithm)}, nil }
		jobtest.RegisterWith("every way: "+name, with, scripted(everyWay))
		jobtest.RegisterWith("every way, hasty: "+name, with, scripted(func(s *script) {
			s.hasty = true
			everyWay(s)
		}))
	}
}

func TestEveryAlgorithmOfProcesses(t *testing.T) {
	busy.Acquire(t)
	for i, name := range algorithmNames {
		t.Run(name, func(t *testing.T) {
			if testsize.Turn(i, 4) {
				jobtest.TCP(t, 5, "every way: "+name)
			}
			if testsize.Turn(i+1, 4) {
				jobtest.Processes(t, 7, "every way, hasty: "+name)
			}
			if testsize.Turn(i+2, 4) {
				jobtest.Hosts(t, 6, "every way: "+name)
			}
			if testsize.Turn(i+3, 4) {
				jobtest.TCP(t, 3, "every way, hasty: "+name)
			}
		})
	}
}

// All ranks have the same sum of numbers that are rounded, to the last bit.
func TestSumsAreTheSame(t *testing.T) {
	const length = 100
	for name, algorithm := range algorithms {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{2, 3, 7, 12} {
				require.NoError(t, world.Run(t.Context(), n, scripted(func(s *script) {
					random := rand.New(rand.NewPCG(1, uint64(s.me)))
					in, out := make([]float64, length), make([]float64, length)
					for i := range in {
						in[i] = math.Exp(20 * random.NormFloat64())
					}
					s.OK(world.AllReduce(s.Ctx, s.World, in, out, add[float64]))
					again := make([]float64, length)
					s.OK(world.AllReduceOp(s.Ctx, s.World, in, again, world.Sum))
					same(s, "AllReduceOp", again, out)
					all := make([]float64, s.n*length)
					s.OK(world.AllGather(s.Ctx, s.World, out, all))
					for i := range all {
						s.Check(math.Float64bits(all[i]) == math.Float64bits(out[i%length]), "element %d of rank %d is %v, here it is %v", i%length, i/length, all[i], out[i%length])
					}
				}), byAlgorithm(algorithm)))
			}
		})
	}
}

// A rank that dies in the midst of a collective is missed in it whatever the way.
func TestDeathInEveryAlgorithm(t *testing.T) {
	busy.Acquire(t)
	for name, algorithm := range algorithms {
		for call, make := range waits {
			t.Run(name+"/"+call, func(t *testing.T) {
				err := world.Run(t.Context(), 6, scripted(func(s *script) {
					for range 20 {
						if err := make(s, s.Ctx); err != nil {
							s.Lost(err, 4)
							s.Fails(err, errBody)
							s.Lost(repeat(s, make), 4)
							return
						}
						if s.me == 4 {
							s.OK(errBody)
						}
					}
					s.Lost(repeat(s, make), 4)
				}), byAlgorithm(algorithm))
				require.EqualError(t, err, "world: rank 4: body failed")
			})
		}
	}
}

// So are ranks that pass different operations.
func TestMismatchOfOperations(t *testing.T) {
	for name, algorithm := range algorithms {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, world.Run(t.Context(), 3, scripted(func(s *script) {
				op := world.Sum
				if s.me == 1 {
					op = world.Max
				}
				err := world.AllReduceOp(s.Ctx, s.World, make([]int64, 64), make([]int64, 64), op)
				for err == nil {
					err = s.World.Barrier(s.Ctx)
				}
				s.Check(errors.Is(err, world.ErrMismatch), "%v", err)
				s.Check(strings.Contains(err.Error(), " calls AllReduceOp by "), "%v", err)
			}), byAlgorithm(algorithm)))
		})
	}
}

// Ranks that disagree are told so whatever the way.
func TestMismatchInEveryAlgorithm(t *testing.T) {
	for name, algorithm := range algorithms {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, world.Run(t.Context(), 5, scripted(func(s *script) {
				length := 64
				if s.me == 3 {
					length++
				}
				err := world.AllReduce(s.Ctx, s.World, make([]int, length), make([]int, length), add[int])
				for err == nil {
					err = s.World.Barrier(s.Ctx)
				}
				s.Check(errors.Is(err, world.ErrMismatch), "%v", err)
			}), byAlgorithm(algorithm)))
		})
	}
}

// What each way takes, of several numbers of ranks and lengths.
func BenchmarkAlgorithms(b *testing.B) {
	for _, device := range []string{"shm", "tcp"} {
		for _, n := range []int{2, 4, 8} {
			for _, bytes := range []int{8, 8 << 10, 1 << 20} {
				for _, call := range []string{"AllReduce", "Reduce", "Broadcast", "AllGather", "AllToAll"} {
					for _, name := range []string{"plain", "short", "long", "by cost"} {
						b.Run(fmt.Sprintf("%s/%d ranks/%d bytes/%s/%s", device, n, bytes, call, name), func(b *testing.B) {
							timeAlgorithm(b, n, bytes/8, call, world.WithDevice(device), byAlgorithm(algorithms[name]))
						})
					}
				}
			}
		}
	}
}

// callOf is a call on k numbers of each rank.
func callOf(ctx context.Context, w *world.World, call string, k int) func() error {
	few := make([]float64, k)
	switch call {
	case "AllReduce":
		sum := make([]float64, k)
		return func() error { return world.AllReduce(ctx, w, few, sum, add[float64]) }
	case "Reduce":
		sum := make([]float64, k)
		return func() error { return world.Reduce(ctx, w, 0, few, sum, add[float64]) }
	case "Broadcast":
		return func() error { return world.Broadcast(ctx, w, 0, few) }
	case "AllGather":
		many := make([]float64, w.Size()*k)
		return func() error { return world.AllGather(ctx, w, few, many) }
	case "AllToAll":
		in, out := make([]float64, w.Size()*k), make([]float64, w.Size()*k)
		return func() error { return world.AllToAll(ctx, w, in, out) }
	}
	panic("there is no call " + call)
}

// The costs of a card tell which way is faster, in the virtual time that has those costs.
func TestByCostIsFaster(t *testing.T) {
	busy.Acquire(t)
	for _, c := range []struct {
		call     string
		n, bytes int
	}{
		{"AllReduce", 2, 8}, {"AllReduce", 16, 8}, {"AllReduce", 16, 8 << 10}, {"AllReduce", 4, testsize.PlainOrLarge(256<<10, 1<<20)},
		{"Reduce", testsize.PlainOrLarge(8, 16), 1 << 20}, {"Broadcast", testsize.PlainOrLarge(8, 16), 4 << 20}, {"AllGather", 4, testsize.PlainOrLarge(256<<10, 1<<20)},
		{"AllToAll", 16, 8},
	} {
		t.Run(fmt.Sprintf("%s/%d ranks/%d bytes", c.call, c.n, c.bytes), func(t *testing.T) {
			plain, byCost := timeInVirtualTime(t, c.n, c.bytes/8, c.call, tuning.Plain), timeInVirtualTime(t, c.n, c.bytes/8, c.call, tuning.ByCost)
			t.Logf("%v, plain %v", byCost, plain)
			require.Less(t, byCost, plain)
		})
	}
}

// timeInVirtualTime is what a call and a barrier take, when connections have been made.
func timeInVirtualTime(t *testing.T, n, k int, call string, algorithm tuning.Algorithm) (took time.Duration) {
	err := world.Simulate(t.Context(), simtest.New(t, "ndr-2024", 1), n, func(ctx context.Context, w *world.World) error {
		f := callOf(ctx, w, call, k)
		var begun time.Duration
		const before, times = 3, 2
		for turn := range before + times {
			if turn == before {
				begun = w.Now()
			}
			if err := errors.Join(f(), w.Barrier(ctx)); err != nil {
				return err
			}
		}
		if w.Rank() == 0 {
			took = (w.Now() - begun) / times
		}
		return nil
	}, byAlgorithm(algorithm))
	require.NoError(t, err)
	return took
}

func timeAlgorithm(b *testing.B, n, k int, call string, options ...world.Option) {
	b.ReportAllocs()
	err := world.Run(b.Context(), n, func(ctx context.Context, w *world.World) error {
		f := callOf(ctx, w, call, k)
		if err := errors.Join(f(), w.Barrier(ctx)); err != nil {
			return err
		}
		if w.Rank() == 0 {
			b.ResetTimer()
		}
		for range b.N {
			if err := f(); err != nil {
				return err
			}
		}
		return w.Barrier(ctx)
	}, options...)
	require.NoError(b, err)
}

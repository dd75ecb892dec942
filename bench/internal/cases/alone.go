package cases

import (
	"context"
	"time"

	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// The cases that measure a whole job, as in peers/mpi_job.c.

const (
	smallWindow   = 1024
	createdWindow = 1 << 20
	// scaledBytes is the size of a step of a case whose size is the number of ranks.
	scaledBytes = 8
	// enough is the time after which no further loop begins.
	enough = 2 * time.Second
)

// fenceScale measures one fence of all ranks.
func fenceScale(ctx context.Context, r *Rank) ([]float64, error) {
	win, err := window.Allocate[byte](ctx, r.World, smallWindow, r.WindowOptions...)
	if err != nil {
		return nil, err
	}
	values, err := r.scale(ctx, &Buffers{views: views{bytes: win}}, fenceOnly)
	if err != nil {
		return nil, err
	}
	if err := win.Fence(ctx, window.NoSucceed); err != nil {
		return nil, err
	}
	return values, win.Close()
}

func barrierLat(ctx context.Context, r *Rank) ([]float64, error) {
	return r.scale(ctx, ForCollectives(r.World, scaledBytes), Barrier)
}

func allReduceScale(ctx context.Context, r *Rank) ([]float64, error) {
	return r.scale(ctx, ForCollectives(r.World, scaledBytes), AllReduce)
}

func broadcastScale(ctx context.Context, r *Rank) ([]float64, error) {
	return r.scale(ctx, ForCollectives(r.World, scaledBytes), Broadcast)
}

// scale measures one step of all ranks, in loops of about a tenth of a second.
func (r *Rank) scale(ctx context.Context, b *Buffers, f Step) ([]float64, error) {
	if _, err := r.steps(ctx, b, f, 3); err != nil {
		return nil, err
	}
	took, err := r.steps(ctx, b, f, 5)
	if err != nil {
		return nil, err
	}
	most := int64(20000)
	if r.Virtual {
		most = 50
	}
	aim := Shortened(100*time.Millisecond, r.Shorten)
	iterations := []int64{min(most, max(5, int64(aim)/(int64(took)/5+1)))}
	if err := world.Broadcast(ctx, r.World, 0, iterations); err != nil {
		return nil, err
	}
	var values []float64
	err = r.repeatedly(ctx, func() error {
		took, err := r.steps(ctx, b, f, int(iterations[0]))
		values = append(values, took.Seconds()/float64(iterations[0])*1e6)
		return err
	})
	return values, err
}

// steps returns the time of iterations steps on this rank.
func (r *Rank) steps(ctx context.Context, b *Buffers, f Step, iterations int) (time.Duration, error) {
	if err := r.World.Barrier(ctx); err != nil {
		return 0, err
	}
	start := r.World.Now()
	err := Loop(ctx, b, f, scaledBytes, iterations)
	return r.World.Now() - start, err
}

// createTime measures the time from when every rank is ready to make a window until every rank has it.
func createTime(ctx context.Context, r *Rank) ([]float64, error) {
	var values []float64
	err := r.repeatedly(ctx, func() error {
		if err := r.World.Barrier(ctx); err != nil {
			return err
		}
		start := r.World.Now()
		win, err := window.Allocate[byte](ctx, r.World, createdWindow, r.WindowOptions...)
		if err != nil {
			return err
		}
		if err := r.World.Barrier(ctx); err != nil {
			return err
		}
		values = append(values, (r.World.Now()-start).Seconds()*1e6)
		return win.Close()
	})
	return values, err
}

// idleCPU measures the share of a core that a rank uses while it waits in a fence, the greatest of all ranks. Ranks
// that share a process are measured together.
func idleCPU(ctx context.Context, r *Rank) ([]float64, error) {
	win, err := window.Allocate[byte](ctx, r.World, smallWindow, r.WindowOptions...)
	if err != nil {
		return nil, err
	}
	if _, err := r.steps(ctx, &Buffers{views: views{bytes: win}}, fenceOnly, 1); err != nil {
		return nil, err
	}
	start, before := r.World.Now(), machine.ProcessorTime()
	if r.World.Rank() == 0 {
		time.Sleep(Shortened(time.Second, r.Shorten))
	}
	if err := win.Fence(ctx, window.NoSucceed); err != nil {
		return nil, err
	}
	share := []float64{0}
	if r.World.Rank() != 0 {
		share[0] = (machine.ProcessorTime() - before).Seconds() / (r.World.Now() - start).Seconds() * 100
	}
	most := []float64{0}
	if err := world.Reduce(ctx, r.World, 0, share, most, func(a, b float64) float64 { return max(a, b) }); err != nil {
		return nil, err
	}
	return most, win.Close()
}

// repeatedly runs a loop as often as requested, or less often if it takes long.
func (r *Rank) repeatedly(ctx context.Context, loop func() error) error {
	start := r.World.Now()
	for i := range r.Repeat {
		more := []int64{0}
		if r.World.Now()-start < enough {
			more[0] = 1
		}
		if i > 0 {
			if err := world.Broadcast(ctx, r.World, 0, more); err != nil {
				return err
			}
			if more[0] == 0 {
				return nil
			}
		}
		if err := loop(); err != nil {
			return err
		}
	}
	return nil
}

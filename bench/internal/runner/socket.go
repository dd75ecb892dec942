package runner

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/program"
)

// measureSocket times the loops of one cell as rank 0, or answers them as rank 1.
func measureSocket(w *cases.SocketEnd, rank int, one cases.Cell, repeat, shorten int) (plan.Result, error) {
	f := one.Case.Socket.Origin
	if rank == 1 {
		f = one.Case.Socket.Target
	}
	iterations := cases.Shortened(one.Case.Iterations(one.Size), shorten)
	values := make([]float64, 0, repeat)
	for range repeat {
		if err := w.Loop(f, one.Size, iterations/10+1); err != nil {
			return plan.Result{}, err
		}
		start := time.Now()
		if err := w.Loop(f, one.Size, iterations); err != nil {
			return plan.Result{}, err
		}
		values = append(values, one.Case.Value(time.Since(start).Seconds()/float64(iterations), one.Size))
	}
	return plan.NewResult(one, 2, values), nil
}

// socketVariable tells a process that it is an end of a socket, and its rank.
const socketVariable = "RMA_BENCH_SOCKET_RANK"

// AtSocket reports whether this process was started for the raw cases.
func AtSocket() bool { return os.Getenv(socketVariable) != "" }

// RunSocket measures what r requests as one end of the socket, which is descriptor firstFile.
func RunSocket(ctx context.Context, o *Options, r *plan.Selection, report func(plan.Result) error) error {
	rank, err := strconv.Atoi(os.Getenv(socketVariable))
	if err != nil || rank < 0 || rank > 1 {
		return fmt.Errorf("bench: %s=%q: allowed are 0 and 1, set by bench itself", socketVariable, os.Getenv(socketVariable))
	}
	jobs, err := r.Jobs(0)
	if err != nil {
		return err
	}
	if err := cases.PrepareSocket(firstFile); err != nil {
		return fmt.Errorf("bench: %s=%d: descriptor %d: %w", socketVariable, rank, firstFile, err)
	}
	return program.WithTimeout(ctx, o.Timeout, func(ctx context.Context) error {
		return profiled(o, rank, func() error {
			w := cases.NewSocketEnd(ctx, firstFile, jobs[0].Cells)
			if o.Shorten <= 1 {
				w.Touch()
			}
			for _, one := range jobs[0].Cells {
				r, err := measureSocket(w, rank, one, o.Repeat, o.Shorten)
				if err != nil {
					return fmt.Errorf("bench: %s of size %d: %w", one.Case.Name, one.Size, err)
				}
				if rank == 0 {
					err = report(r)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// socketLinks gives two processes the ends of a connection over loopback.
func socketLinks() (*links, error) {
	ends, err := cases.ConnectedSockets()
	if err != nil {
		return nil, fmt.Errorf("bench: a connection over loopback: %w", err)
	}
	return &links{
		of: func(rank int) (*os.File, []string, error) {
			return ends[rank], []string{fmt.Sprint(socketVariable, "=", rank)}, nil
		},
		close: func() error {
			for _, end := range ends {
				end.Close() // most are closed: their processes have them
			}
			return nil
		},
	}, nil
}

package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
)

// MaxRanks is the most ranks that Run starts.
const MaxRanks = 1 << 16

// Run runs body on n ranks that are goroutines of this process, and returns when all have ended.
func Run(ctx context.Context, n int, body func(ctx context.Context, w *World) error, options ...Option) error {
	s, err := checkRun("Run", ctx, n, body, options)
	if err != nil {
		return err
	}
	worlds, err := localWorlds(ctx, n, s)
	if err != nil {
		return errtext.Errorf("world: Run: %w", err)
	}
	errs := make([]error, n)
	var ranks sync.WaitGroup
	for rank, w := range worlds {
		ranks.Go(func() { runRank(ctx, body, w, &errs[rank]) })
	}
	ranks.Wait()
	return summary(errs)
}

// checkRun checks the arguments of Run.
func checkRun(name string, ctx context.Context, n int, body func(ctx context.Context, w *World) error, options []Option) (Settings, error) {
	if n < 1 || n > MaxRanks {
		return Settings{}, fmt.Errorf("world: %s: %w: %s, allowed are 1 to %d", name, ErrArgument, errtext.Count(n, "rank"), MaxRanks)
	}
	switch {
	case ctx == nil:
		return Settings{}, nilArgument(name, "context")
	case body == nil:
		return Settings{}, nilArgument(name, "body")
	}
	s, err := jobSettings(options)
	if err != nil {
		return Settings{}, errtext.Errorf("world: %s: %w", name, err)
	}
	s.warnLaunched(name, n)
	return s, nil
}

// warnLaunched says, as rank 0, that a launcher has started this process as one rank of several, and that the process makes
// ranks of its own instead: the program does not do what its user takes it to do.
func (s *Settings) warnLaunched(call string, n int) {
	processes := cmp.Or(os.Getenv("PMI_SIZE"), os.Getenv("RMA_SIZE"))
	launched := os.Getenv("PMI_FD") != "" || os.Getenv("PMI_PORT") != "" || os.Getenv("RMA_ROOT") != "" && lastJob.Load() == 0
	first := cmp.Or(os.Getenv("PMI_RANK"), os.Getenv("PMI_ID"), os.Getenv("RMA_RANK"), "0") == "0"
	if !launched {
		s.warnUnmanaged(call, n)
		return
	}
	if !first || processes == "1" {
		return
	}
	s.logger.Warn("a launcher has started this process as a rank, but each process makes ranks of its own; to be a rank of the launcher's job a program calls world.Main or world.Init",
		"call", call, "ranks of each process", n, "processes", processes)
}

// warnUnmanaged says, as the first of several processes, that a launcher has started them whose connection this library does not know, and
// that each has a job of its own.
func (s *Settings) warnUnmanaged(call string, n int) {
	for _, name := range []string{"PMI_RANK", "PMI_SIZE", "PMI_ID", "RMA_ROOT"} {
		if os.Getenv(name) != "" {
			// The variables of the other launcher are around a job that this process knows.
			return
		}
	}
	for _, l := range foreignLaunchers {
		processes := os.Getenv(l.size)
		if size, err := strconv.Atoi(processes); err != nil || size < 2 {
			continue
		}
		if rank := os.Getenv(l.rank); rank == "" || rank == "0" {
			s.logger.Warn("a launcher without PMI-1 has started several processes, and each has a job of its own; to be ranks of one job they are started by rmarun, mpiexec.hydra or srun --mpi=pmi2, or with RMA_ROOT",
				"call", call, "ranks of each process", n, l.size, processes)
		}
		return
	}
}

// foreignLaunchers are the variables of launchers, for the number of processes and of this one, that are also set where they serve no PMI-1:
// by Open MPI, which is first because it may run within Slurm, and by srun. SLURM_NTASKS is set in batch scripts, too.
var foreignLaunchers = []struct{ size, rank string }{
	{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
	{"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
}

// runRank calls body for a rank and closes its World. The error of both is in result also when
// the body ends the goroutine, by runtime.Goexit.
func runRank(ctx context.Context, body func(ctx context.Context, w *World) error, w *World, result *error) {
	err := errUnwound
	defer func() {
		if err == nil {
			*result = w.closeAll()
			return
		}
		// Also if this ends the goroutine once more.
		*result = err
		*result = errors.Join(err, w.departFailed(err))
	}()
	err = call(ctx, body, w)
}

// closeAll is the end of a rank whose body has done well.
func (w *World) closeAll() error {
	return errors.Join(w.departShrunk(), w.CloseOwn(context.Background()))
}

// departFailed ends the membership of a rank whose body has failed. It waits for other ranks at most reasonTime, and until
// goroutines of this one that are in a call of a window have noticed the failure.
func (w *World) departFailed(why error) error {
	w.blameNoMore(Failed(why) == nil)
	sent := w.sendReason(why, reasonTime)
	// A goroutine that still sends waits for a peer until the device is closed.
	defer sent.running.Wait()
	return errors.Join(w.departShrunk(), w.finalize(context.Background()), w.depart())
}

var errUnwound = errors.New("body ended its goroutine")

// call turns a panic into an error.
func call(ctx context.Context, body func(ctx context.Context, w *World) error, w *World) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return callBody(ctx, body, w)
}

// ofBody is the key of a *runningBody, which only contexts of bodies have.
type ofBody struct{}

// A runningBody is a body that has begun, within another one or within none.
type runningBody struct {
	outer *runningBody
	ended atomic.Bool
}

// runs reports whether the body, or one that it is within, has not ended.
func (b *runningBody) runs() bool { return b != nil && (!b.ended.Load() || b.outer.runs()) }

// bodyOf returns the innermost body of which a context is, nil if there is none.
func bodyOf(ctx context.Context) *runningBody {
	b, _ := ctx.Value(ofBody{}).(*runningBody)
	return b
}

// callBody calls the body of a rank. Its name is how withinBody knows the goroutines of bodies.
func callBody(ctx context.Context, body func(ctx context.Context, w *World) error, w *World) error {
	running := &runningBody{outer: bodyOf(ctx)}
	defer running.ended.Store(true)
	return body(context.WithValue(ctx, ofBody{}, running), w)
}

// bodyCaller is the name of callBody.
var bodyCaller = runtime.FuncForPC(reflect.ValueOf(callBody).Pointer()).Name()

// withinBody reports whether a body calls it, or another goroutine with a context of a body that has not ended. It does not see a goroutine that
// a body has started and that has another context.
func withinBody(ctx context.Context) bool {
	if bodyOf(ctx).runs() {
		return true
	}
	callers := make([]uintptr, 64)
	n := runtime.Callers(1, callers)
	for n == len(callers) {
		callers = make([]uintptr, 2*n)
		n = runtime.Callers(1, callers)
	}
	frames := runtime.CallersFrames(callers[:n])
	for {
		frame, more := frames.Next()
		if frame.Function == bodyCaller || !more {
			return frame.Function == bodyCaller
		}
	}
}

// summary joins the errors that are not consequences of others.
func summary(errs []error) error {
	var own, followed []error
	for rank, err := range errs {
		if err == nil {
			continue
		}
		var peer *PeerError
		if e := (&RankError{rank, err}); errors.As(err, &peer) {
			followed = append(followed, e)
		} else {
			own = append(own, e)
		}
	}
	if len(own) == 0 {
		own = followed
	}
	return errors.Join(own...)
}

// localWorlds makes the ranks of a job in this process.
func localWorlds(ctx context.Context, n int, s Settings) ([]*World, error) {
	if s.device == tcpDevice || s.device == ibvDevice {
		return networkWorlds(ctx, n, s)
	}
	if err := s.checkFiles(false); err != nil {
		return nil, err
	}
	fabric := shm.NewFabric()
	roster := newRoster(n)
	worlds := make([]*World, n)
	texts := make([]string, n)
	var devices []verbs.Device
	fault := func(err error) ([]*World, error) {
		dropPipes(worlds)
		return nil, errors.Join(err, closeDevices(devices))
	}
	for rank := range n {
		device, err := fabric.Open()
		if err != nil {
			return fault(err)
		}
		devices = append(devices, device)
		b, err := newBase([cardKinds]verbs.Device{sharedCard: device}, n)
		if err != nil {
			return fault(err)
		}
		texts[rank] = b.contact.text()
		worlds[rank] = newWorld(rank, n, b, roster, s)
		if err := worlds[rank].holdStats(); err != nil {
			return fault(err)
		}
	}
	here := introduction{machine: "this", host: "this", cores: runtime.GOMAXPROCS(0)}
	j, err := newJob(slices.Repeat([]introduction{here}, n), texts)
	if err != nil {
		return fault(err)
	}
	for _, w := range worlds {
		w.reopen = func(context.Context, rankCounts) (again [cardKinds]verbs.Device, err error) {
			again[sharedCard], err = fabric.Open()
			return again, err
		}
		if err := w.begin(j); err != nil {
			return fault(err)
		}
	}
	return worlds, nil
}

// networkWorlds makes them as if they were processes: each opens its own device.
func networkWorlds(ctx context.Context, n int, s Settings) ([]*World, error) {
	exchange := newLocalExchange(n)
	worlds := make([]*World, n)
	errs := make([]error, n)
	var ranks sync.WaitGroup
	for rank := range n {
		ranks.Go(func() {
			worlds[rank], errs[rank] = join(ctx, rank, n, exchange.of(rank), s)
			if errs[rank] != nil {
				exchange.fail.Do(func() { close(exchange.failed) })
			}
		})
	}
	ranks.Wait()
	err := errors.Join(errs...)
	if err == nil {
		return worlds, nil
	}
	for _, w := range worlds {
		if w != nil {
			err = errors.Join(err, w.depart())
		}
	}
	return nil, err
}

// A localExchange is one between goroutines.
type localExchange struct {
	size int
	// failed is closed when a rank has given up, which will not come again.
	failed chan struct{}
	fail   sync.Once

	mu     sync.Mutex
	rounds []*localRound
}

type localRound struct {
	texts []string
	count int
	full  chan struct{}
}

func newLocalExchange(size int) *localExchange {
	return &localExchange{size: size, failed: make(chan struct{})}
}

var errGivenUp = errors.New("another rank has given up")

func (x *localExchange) of(rank int) Exchange {
	next := 0
	return func(ctx context.Context, mine string) ([]string, error) {
		r := x.put(next, rank, mine)
		next++
		select {
		case <-r.full:
			return r.texts, nil
		case <-x.failed:
			return nil, errGivenUp
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (x *localExchange) put(round, rank int, text string) *localRound {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.rounds) == round {
		x.rounds = append(x.rounds, &localRound{texts: make([]string, x.size), full: make(chan struct{})})
	}
	r := x.rounds[round]
	r.texts[rank] = text
	if r.count++; r.count == x.size {
		close(r.full)
	}
	return r
}

func closeDevices(devices []verbs.Device) error {
	var errs []error
	for _, device := range devices {
		if device != nil {
			errs = append(errs, device.Close())
		}
	}
	return errors.Join(errs...)
}

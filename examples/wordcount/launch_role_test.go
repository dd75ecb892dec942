package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// roleVariable makes a process of this test binary a rank under a real launcher, and names its role. Unlike a body of
// jobtest, the rank calls world.Init itself.
const roleVariable = "WORDCOUNT_TEST_ROLE"

// as returns the environment of a process with a role.
func as(role string) []string {
	return []string{roleVariable + "=" + role, "GORACE=atexit_sleep_ms=0 " + os.Getenv("GORACE")}
}

const (
	// routesRole prints the route to each rank.
	routesRole = "routes"
	// wholeRole is the program, which also prints its routes to standard error.
	wholeRole = "whole"
	// hammerRole writes to all ranks until a given number of them is lost.
	hammerRole = "hammer"
	// countRole is the job, which waits for a line of input before it counts.
	countRole = "count"
	// orphanRole writes to all ranks without end.
	orphanRole = "orphan"
	// absentRole joins the job, except in rank 0, which never joins.
	absentRole = "absent"
)

// readyFormat is the line with which a rank reports its process when it is ready.
const readyFormat = "process %d is ready"

// roleLimit is the time after which a rank that hangs ends with an error. The test's own limit is shorter.
const roleLimit = 2 * await.Limit

// A process that has a role is only a rank: no test runs in it.
func init() {
	role, ok := os.LookupEnv(roleVariable)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), roleLimit)
	defer cancel()
	if err := play(ctx, role, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func play(ctx context.Context, role string, arguments []string) error {
	switch role {
	case routesRole:
		return playRoutes(ctx)
	case wholeRole:
		return playWhole(ctx, arguments)
	case hammerRole:
		return playHammer(ctx, arguments)
	case countRole:
		return playCount(ctx, arguments)
	case orphanRole:
		return playOrphan(ctx)
	case absentRole:
		return playAbsent(ctx)
	}
	return fmt.Errorf("wordcount: unknown role %q", role)
}

func playRoutes(ctx context.Context) error {
	w, err := world.Init(ctx)
	if err != nil {
		return err
	}
	printRoutes(os.Stdout, w)
	return errors.Join(w.Barrier(ctx), w.Close())
}

func printRoutes(out io.Writer, w *world.World) {
	var to []string
	for rank := range w.Size() {
		to = append(to, w.Route(rank))
	}
	// One write for a line, because ranks share the output.
	fmt.Fprintln(out, sayRoutes(w.Rank(), to))
}

func playWhole(ctx context.Context, arguments []string) error {
	w, err := world.Init(ctx)
	if err != nil {
		return err
	}
	printRoutes(os.Stderr, w)
	options, err := parse(arguments)
	if err != nil {
		return err
	}
	return (&job{options: options, out: os.Stdout, errout: os.Stderr}).runAs(ctx, w)
}

// initialize joins the job. The first argument is the peer timeout.
func initialize(ctx context.Context, arguments []string) (*world.World, error) {
	silence, err := time.ParseDuration(arguments[0])
	if err != nil {
		return nil, err
	}
	return world.Init(ctx, world.WithPeerTimeout(silence))
}

// playHammer makes every rank write to every other rank, in one epoch, until it has lost the number of ranks in the
// second argument. It names each rank that it loses, and checks that it still reaches all others. A third argument
// names a rank that kills itself meanwhile.
func playHammer(ctx context.Context, arguments []string) error {
	w, err := initialize(ctx, arguments)
	if err != nil {
		return err
	}
	toLose, err := strconv.Atoi(arguments[1])
	if err != nil {
		return err
	}
	h, err := newHammer(ctx, w)
	if err != nil {
		return err
	}
	if err := h.round(ctx); err != nil {
		return err
	}
	if err := w.Barrier(ctx); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, insideLine)
	if len(arguments) > 2 {
		if err := h.kill(ctx, arguments[2]); err != nil {
			return err
		}
	}
	for len(h.lost) < toLose {
		if err := h.round(ctx); err != nil {
			return err
		}
	}
	before := len(h.lost)
	for range 100 {
		if err := h.round(ctx); err != nil {
			return err
		}
	}
	if len(h.lost) != before {
		return fmt.Errorf("wordcount: rank %d has lost %d ranks, not %d: %v", w.Rank(), len(h.lost), toLose, h.lost)
	}
	fmt.Fprintln(os.Stderr, goesOnLine)
	err = w.Close()
	if slices.Contains(h.lost, rootRank) {
		// Rank 0 is dead, so Close may report that the exchange has ended.
		return nil
	}
	return err
}

// playOrphan writes to all ranks, in one epoch, until a call fails.
func playOrphan(ctx context.Context) error {
	w, err := world.Init(ctx, world.WithPeerTimeout(never))
	if err != nil {
		return err
	}
	h, err := newHammer(ctx, w)
	if err != nil {
		return err
	}
	for turn := 0; len(h.lost) == 0; turn++ {
		if err := h.round(ctx); err != nil {
			return err
		}
		if turn == 0 {
			fmt.Printf(readyFormat+"\n", os.Getpid())
		}
	}
	return nil
}

// playAbsent makes all ranks wait in the exchange for rank 0.
func playAbsent(ctx context.Context) error {
	fmt.Printf(readyFormat+"\n", os.Getpid())
	if os.Getenv("PMI_RANK") == "0" {
		<-ctx.Done()
		return ctx.Err()
	}
	_, err := world.Init(ctx)
	return err
}

// rootRank serves the exchange where there is no manager.
const rootRank = 0

// These are lines that ranks print to standard error.
const (
	insideLine = "inside an epoch"
	failedLine = "has failed"
	goesOnLine = "goes on with the others"
	lostFormat = "lost rank %d: "
)

// A hammer is the state of a rank that writes to all others.
type hammer struct {
	w     *world.World
	words *window.Window[uint64]
	turn  uint64
	lost  []int
}

// newHammer makes the window and opens an epoch to all ranks.
func newHammer(ctx context.Context, w *world.World) (*hammer, error) {
	words, err := window.Allocate[uint64](ctx, w, w.Size())
	if err != nil {
		return nil, err
	}
	return &hammer{w: w, words: words}, words.LockAll(ctx)
}

// kill makes the victim kill itself when all others have notified it.
func (h *hammer) kill(ctx context.Context, victim string) error {
	rank, err := strconv.Atoi(victim)
	if err != nil {
		return err
	}
	if rank != h.w.Rank() {
		return h.words.PutNotify(nil, rank, 0, 0)
	}
	if err := h.words.WaitNotify(ctx, 0, uint64(h.w.Size()-1)); err != nil {
		return err
	}
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// round writes to, adds to and reads from all ranks that are not lost.
func (h *hammer) round(ctx context.Context) error {
	h.turn++
	for target := range h.w.Size() {
		if target == h.w.Rank() || slices.Contains(h.lost, target) {
			continue
		}
		err := h.strike(ctx, target)
		var peer *world.PeerError
		switch {
		case err == nil:
		case errors.As(err, &peer):
			if peer.Rank != target {
				return fmt.Errorf("wordcount: a call that needs rank %d names rank %d: %w", target, peer.Rank, err)
			}
			h.lost = append(h.lost, target)
			fmt.Fprintf(os.Stderr, lostFormat+"%v\n", target, err)
		default:
			return err
		}
	}
	return nil
}

// strike writes to this rank's element at the target, adds to it, and reads it back.
func (h *hammer) strike(ctx context.Context, target int) error {
	mine := h.w.Rank()
	var old, now [1]uint64
	if err := h.words.Put([]uint64{h.turn}, target, mine); err != nil {
		return err
	}
	if err := h.words.Flush(ctx, target); err != nil {
		return err
	}
	if err := h.words.FetchAndOp(window.Sum, 1, &old[0], target, mine); err != nil {
		return err
	}
	if err := h.words.Flush(ctx, target); err != nil {
		return err
	}
	if err := h.words.Get(now[:], target, mine); err != nil {
		return err
	}
	if err := h.words.Flush(ctx, target); err != nil {
		return err
	}
	if old[0] != h.turn || now[0] != h.turn+1 {
		return fmt.Errorf("wordcount: rank %d has %d, then %d where %d was put and 1 added", target, old[0], now[0], h.turn)
	}
	return nil
}

// playCount is the main job. Every rank stops after the table is made, and continues when it reads a line. So a test
// knows where the job is. A rank that fails stays until its input ends, because other ranks would report its end as a
// failure.
func playCount(ctx context.Context, arguments []string) error {
	w, err := initialize(ctx, arguments)
	if err != nil {
		return err
	}
	options, err := parse(arguments[1:])
	if err != nil {
		return err
	}
	r := newRank(&job{options: options, out: os.Stdout, errout: os.Stderr}, w)
	s, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	if err := r.open(ctx, s); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, insideLine)
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	if err := r.evaluate(ctx, s); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s\n", err, failedLine)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return err
	}
	return errors.Join(r.table.Close(), r.jobWindow.close(ctx), w.Close())
}

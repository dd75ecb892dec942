package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/progress"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

// Simulate runs body on n ranks in the virtual time of a simulator, each with a simulated card.
func Simulate(ctx context.Context, s *sim.Simulator, n int, body func(ctx context.Context, w *World) error, options ...Option) error {
	if s == nil {
		return nilArgument("Simulate", "simulator")
	}
	settings, err := checkRun("Simulate", ctx, n, body, options)
	if err != nil {
		return err
	}
	if err := s.CheckJob(n); err != nil {
		return errtext.Errorf("world: Simulate: %w: %w", ErrArgument, err)
	}
	pipe, err := settings.openPipe()
	if err != nil {
		return errtext.Errorf("world: Simulate: %w", err)
	}
	if pipe != nil {
		// The ranks open it again, one after the other: a job may have more of them than the process may have descriptors.
		defer pipe.Close()
	}
	worlds, cards, err := simulatedWorlds(s, n, settings)
	if err != nil {
		return errtext.Errorf("world: Simulate: %w", err)
	}
	errs, left := make([]error, n), make([]bool, n)
	for rank, w := range worlds {
		// The card is the simulator's, whoever dies.
		cards[rank].Go(fmt.Sprintf("rank %d", rank), func() {
			defer func() { w.vigil.since[rank] = everSince }()
			runRank(ctx, body, w, &errs[rank])
			left[rank] = true
		})
	}
	err = s.Run()
	for rank, w := range worlds {
		if cards[rank].Killed() && killing(errs[rank], left[rank]) {
			errs[rank] = errKilled
		}
		_ = w.home.device.Close()
	}
	return errors.Join(err, summary(errs))
}

// killing reports whether what became of a rank is what its being killed makes of it: an error of
// its own counts, and so does that it had left.
func killing(err error, left bool) bool {
	return err == nil && !left || errors.Is(err, errUnwound) || errors.Is(err, verbs.ErrClosed)
}

var errKilled = fmt.Errorf("%w: the rank was killed", sim.ErrFault)

// simulatedWorlds makes the ranks of a simulated job. Each opens its card as a task of its own:
// they do so at once.
func simulatedWorlds(s *sim.Simulator, n int, settings Settings) ([]*World, []*sim.Device, error) {
	if err := settings.checkStats(); err != nil {
		return nil, nil, err
	}
	worlds, errs := make([]*World, n), make([]error, n)
	ranks, texts := make([]introduction, n), make([]string, n)
	// Faults name ranks by the numbers of their first cards.
	cards := make([]*sim.Device, n)
	for rank := range cards {
		cards[rank] = s.Open()
	}
	for rank, card := range cards {
		device, err := settings.simulatedDevice(card)
		if err != nil {
			return nil, nil, err
		}
		host := fmt.Sprintf("host %d", rank)
		ranks[rank] = introduction{machine: host, host: host, cores: 1}
		card.Go(fmt.Sprintf("rank %d opens its card", rank), func() {
			var b *base
			if b, errs[rank] = newBase([cardKinds]verbs.Device{networkCard: device}, n); errs[rank] != nil {
				return
			}
			texts[rank] = b.contact.text()
			worlds[rank] = newWorld(rank, n, b, newRoster(n), settings)
			worlds[rank].changeLimits(func(l *progress.Limits) { l.Yields = 0 })
			worlds[rank].networkName = "sim"
			worlds[rank].traceSimulated(card)
			worlds[rank].reopen = func(context.Context, rankCounts) (again [cardKinds]verbs.Device, err error) {
				again[networkCard], err = settings.simulatedDevice(s.Open())
				return again, err
			}
		})
	}
	if err := errors.Join(append(errs, s.Run())...); err != nil {
		return nil, nil, err
	}
	j, err := newJob(ranks, texts)
	if err != nil {
		return nil, nil, err
	}
	v := &vigil{patience: settings.patience, since: make([]time.Duration, n), callers: make([]*endpoint, n)}
	all := make([]int, n)
	for rank := range all {
		all[rank] = rank
	}
	for _, w := range worlds {
		w.vigil, w.vigilRank, w.vigilRanks = v, w.rank, all
		if err := w.begin(j); err != nil {
			return nil, nil, err
		}
	}
	return worlds, cards, nil
}

// simulatedDevice is the device of a rank with a card: that, or with as many rails as there are to
// be.
func (s *Settings) simulatedDevice(card *sim.Device) (verbs.Device, error) {
	cards := []verbs.Device{card}
	for len(cards) < s.tuning.Rails {
		cards = append(cards, card.OpenRail())
	}
	return joinCards(cards, s.tuning.NoStriping)
}

// ErrDeadlock: in virtual time all ranks wait, and have for longer than anything takes. The error says of
// 32 ranks, or of all if they are fewer, which call each is in and which rank that waits for.
var ErrDeadlock = errors.New("all ranks wait for each other")

// A vigil finds out whether the ranks of a simulated job all wait. They ask each other now and
// then while they do, so that the simulator cannot tell.
type vigil struct {
	patience time.Duration
	// since is when each rank began the wait that it is in, 0 if it is in none; who has ended
	// waits since ever.
	since []time.Duration
	// callers has, for each rank, the endpoint of the World in a call of which it slept last, nil if it has slept in none.
	callers []*endpoint
}

const everSince = -1

// begin notes that a rank waits, and reports whether it did not before: waits may have others
// within.
func (v *vigil) begin(rank int, now time.Duration) bool {
	if v.since[rank] != 0 {
		return false
	}
	v.since[rank] = max(now, 1)
	return true
}

// over reports whether all have waited too long.
func (v *vigil) over(now time.Duration) bool {
	for _, since := range v.since {
		if since == 0 || since != everSince && now-since < v.patience {
			return false
		}
	}
	return true
}

// mostReported is how many ranks the report of a deadlock names.
const mostReported = 32

// report says what all ranks wait for, in the error of one of them. It is only that one where the rank closes its World: Close goes
// on in spite of the error, and does not return it.
func (v *vigil) report(rank int, closes bool) string {
	if closes {
		return v.waitOf(rank)
	}
	var waits []string
	for rank := range v.since[:min(len(v.since), mostReported)] {
		waits = append(waits, v.waitOf(rank))
	}
	if more := len(v.since) - len(waits); more > 0 {
		waits = append(waits, "and "+errtext.Count(more, "more rank"))
	}
	return strings.Join(waits, "; ")
}

// waitOf says what a rank waits for.
func (v *vigil) waitOf(rank int) string {
	call := v.callOf(rank)
	if call == nil {
		return fmt.Sprintf("rank %d %s", rank, v.stateOf(rank, nil))
	}
	whom := "any other rank"
	if r := v.awaitedIn(call, rank); r >= 0 {
		whom = fmt.Sprintf("rank %d", r)
	}
	return fmt.Sprintf("rank %d in %s waits for %s", rank, call.name, whom)
}

// awaitedIn returns the rank that a rank waits for in a call, -1 if several may end the wait. Both have their numbers in the
// job that began.
func (v *vigil) awaitedIn(call *waitingCall, rank int) int {
	awaited := int(call.rank.Load())
	if awaited >= 0 {
		awaited = v.callers[rank].vigilRanks[awaited]
	}
	return awaited
}

// stateOf says what a rank does to a rank of a job, whose ranks have these numbers in the one that began.
func (v *vigil) stateOf(rank int, job []int) string {
	call := v.callOf(rank)
	switch {
	case call != nil:
		shown := waitingCall{name: call.name}
		shown.rank.Store(int32(slices.Index(job, v.awaitedIn(call, rank))))
		return "in " + shown.String()
	case v.since[rank] == everSince:
		return "has closed its World"
	}
	return inNoCall
}

func (v *vigil) callOf(rank int) *waitingCall {
	if v.callers[rank] == nil {
		return nil
	}
	return v.callers[rank].waitingCalls.last()
}

// traceSimulated has spans go to the trace of the simulator whose card it is, if that has one.
func (w *World) traceSimulated(card verbs.Device) {
	if simulated, ok := card.(*sim.Device); ok && simulated.Traced() {
		w.span = simulated.Span
	}
}

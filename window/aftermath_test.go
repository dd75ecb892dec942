package window_test

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/world"
)

// An ending is how the body of a rank has ended.
type ending struct {
	// gone: it has; returned: with err, and not because the rank was killed.
	gone, returned bool
	err            error
}

// An aftermath is how a job under faults has ended.
type aftermath struct {
	plan sim.Faults
	// retry is how long a request may go unanswered.
	retry time.Duration
	// came tells of each fault of the plan whether it has come, struck whether to a rank that ran.
	came, struck []bool
	endings      []ending
	// err is Simulate's.
	err    error
	length time.Duration
	events uint64
}

// strike notes that a fault has come to a rank.
func (a *aftermath) strike(rank int, fault string) {
	for i := range a.plan {
		if a.plan[i].String() == fault {
			a.came[i] = true
			a.struck[i] = a.struck[i] || !a.endings[rank].gone
		}
	}
}

// faults are those that have come.
func (a *aftermath) faults() iter.Seq[*sim.Fault] {
	return func(yield func(*sim.Fault) bool) {
		for i := range a.plan {
			if a.came[i] && !yield(&a.plan[i]) {
				return
			}
		}
	}
}

// killed reports whether a fault has ended a rank.
func (a *aftermath) killed(rank int) bool {
	for f := range a.faults() {
		if f.Kind == sim.Kill && f.Rank == rank || f.Kind == sim.PowerLoss && slices.Contains(f.Ranks, rank) {
			return true
		}
	}
	return false
}

// refused reports whether a fault has had a rank's card reject memory.
func (a *aftermath) refused(rank int) bool {
	for f := range a.faults() {
		if f.Kind == sim.RejectMemory && f.Rank == rank {
			return true
		}
	}
	return false
}

// parts reports whether a fault may have broken the connection of two ranks, other than by ending one. Delays, senders
// that wait for receives, and slow processors do not. Nor do stalls that are shorter than the timeout of a request. A
// card that rejects memory rejects connections.
func (a *aftermath) parts(rank, other int) bool {
	for f := range a.faults() {
		one := f.Rank == rank || f.Rank == other
		switch f.Kind {
		case sim.FailPair:
			if one && (f.Peer == rank || f.Peer == other) && f.Peer != f.Rank {
				return true
			}
		case sim.Stall:
			if one && (f.For == 0 || f.For >= a.retry) {
				return true
			}
		case sim.Overflow, sim.Exhaust, sim.RejectMemory:
			if one {
				return true
			}
		}
	}
	return false
}

// joined is the type of what errors.Join gives. What wraps several errors otherwise is one.
var joined = reflect.TypeOf(errors.Join(errors.New("")))

// separate are errors that were joined, one by one.
func separate(err error) (all []error) {
	if err == nil {
		return nil
	}
	if reflect.TypeOf(err) != joined {
		return []error{err}
	}
	for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
		all = append(all, separate(one)...)
	}
	return all
}

// What explains the error of a rank, for counts.
const (
	ownFault = "by a fault of their own card"
	parted   = "parted from a rank by a fault, or its end"
	told     = "told of a rank that a fault has parted from another"
	followed = "because a rank had left with an error"
)

// reason returns what explains an error of a rank, or "" if nothing does. A fault of its own card does. So does the
// failure of a rank if faults
//
//   - have ended that rank, or have separated the two,
//   - have separated that rank from another, which has notified this one: a rank that one rank has lost counts as
//     failed on all, or
//   - are the reason that the rank had left with an error of its own. No fault need have affected it. A rank that gives
//     up closes its card. Ranks that wait for it learn that it has failed, by "ended the connection" or "the device was
//     closed".
func (a *aftermath) reason(rank int, err error, explained []bool) string {
	var peer *world.PeerError
	switch {
	case errors.As(err, &peer):
		if peer.Rank < 0 || peer.Rank >= len(a.endings) || peer.Rank == rank {
			return ""
		}
		if a.killed(peer.Rank) || a.parts(rank, peer.Rank) {
			return parted
		}
		for by := range a.endings {
			if strings.Contains(err.Error(), "told by rank") && by != peer.Rank && a.parts(by, peer.Rank) {
				return told
			}
		}
		if a.endings[peer.Rank].err != nil && explained[peer.Rank] {
			return followed
		}
	case errors.Is(err, verbs.ErrMemory), errors.Is(err, sim.ErrFault):
		if a.killed(rank) || a.refused(rank) {
			return ownFault
		}
	case errors.Is(err, verbs.ErrClosed):
		// It goes on for a while, without its card.
		if a.killed(rank) {
			return ownFault
		}
	}
	return ""
}

// explain finds the ranks that had a reason to leave. One of their errors is enough for that:
// that a rank has followed another explains only what has an explanation without it.
func (a *aftermath) explain() (explained []bool) {
	explained = make([]bool, len(a.endings))
	for again := true; again; {
		again = false
		for rank := range a.endings {
			had := func(err error) bool { return a.reason(rank, err, explained) != "" }
			if !explained[rank] && (a.killed(rank) || slices.ContainsFunc(separate(a.endings[rank].err), had)) {
				explained[rank], again = true, true
			}
		}
	}
	return explained
}

// wrong tells which ranks have not ended, or not with what the faults have brought about: without
// an error, unless it explains one.
func (a *aftermath) wrong() error {
	explained := a.explain()
	var wrong []error
	check := func(rank int, err error) {
		for _, one := range separate(err) {
			if a.reason(rank, one, explained) == "" {
				wrong = append(wrong, fmt.Errorf("rank %d ended for no reason: %w", rank, one))
			}
		}
	}
	for rank, end := range a.endings {
		if check(rank, end.err); !end.returned && !a.killed(rank) {
			wrong = append(wrong, fmt.Errorf("rank %d has not ended", rank))
		}
	}
	// What Simulate adds is that ranks were killed, and what leaving has brought.
	for _, err := range separate(a.err) {
		var rank *world.RankError
		if !errors.As(err, &rank) {
			wrong = append(wrong, err)
			continue
		}
		check(rank.Rank, rank.Cause)
	}
	return errors.Join(wrong...)
}

// count counts why ranks have ended.
func (a *aftermath) count(reasons map[string]int) {
	explained := a.explain()
	for rank, end := range a.endings {
		switch errs := separate(end.err); {
		case !end.returned:
			reasons["killed"]++
		case len(errs) == 0:
			reasons["well"]++
		default:
			reasons[a.reason(rank, errs[0], explained)]++
		}
	}
}

// TestAftermath holds ends of jobs against what they may be.
func TestAftermath(t *testing.T) {
	failed := func(rank int, cause string) error { return &world.PeerError{Rank: rank, Cause: errors.New(cause)} }
	for _, c := range []struct {
		name, plan string
		ends       []error
		wrong      bool
	}{
		{"undisturbed", "", []error{nil, nil, nil}, false},
		{"what hurts nobody", "at 1us delay rank 0 in by 9us\nat 1us starve rank 1 times 3\nat 1us slow rank 1 by 9\nat 1us stall rank 2 in for 9us", []error{failed(1, ""), failed(0, ""), nil}, true},
		{"killed", "at 1us kill rank 1", []error{failed(1, ""), verbs.ErrClosed, failed(1, "")}, false},
		{"not the one killed", "at 1us kill rank 1", []error{failed(2, ""), nil, failed(1, "")}, false},
		{"one that has ended well", "at 1us kill rank 1", []error{failed(2, ""), nil, nil}, true},
		{"each other", "at 1us kill rank 1", []error{failed(2, ""), nil, failed(0, "")}, true},
		{"parted", "at 1us fail-pair rank 0 peer 1", []error{failed(1, ""), failed(0, ""), nil}, false},
		{"told of the parted", "at 1us fail-pair rank 0 peer 1", []error{nil, nil, failed(1, "(told by rank 0)")}, false},
		{"not told of the parted", "at 1us fail-pair rank 0 peer 1", []error{nil, nil, failed(1, "")}, true},
		{"refused", "at 1us reject-memory rank 0", []error{verbs.ErrMemory, failed(0, ""), nil}, false},
		{"refused by another", "at 1us reject-memory rank 0", []error{nil, verbs.ErrMemory, nil}, true},
		{"wrong data", "at 1us kill rank 1", []error{errors.New("contents are others"), nil, nil}, true},
		{"wrong data, too", "at 1us kill rank 1", []error{errors.Join(failed(1, ""), errors.New("contents are others")), nil, nil}, true},
	} {
		plan, err := sim.ParseFaults(c.plan)
		require.NoError(t, err, c.name)
		a := &aftermath{plan: plan, retry: time.Second, came: make([]bool, len(plan)), struck: make([]bool, len(plan)), endings: make([]ending, len(c.ends))}
		for i := range plan {
			a.strike(plan[i].Rank, plan[i].String())
		}
		for rank, err := range c.ends {
			a.endings[rank] = ending{gone: true, returned: true, err: err}
		}
		if c.wrong {
			require.Error(t, a.wrong(), c.name)
		} else {
			require.NoError(t, a.wrong(), c.name)
		}
		// Of faults that have not come yet only an end without an error has a reason.
		clear(a.came)
		require.Equal(t, slices.ContainsFunc(c.ends, func(err error) bool { return err != nil }), a.wrong() != nil, c.name)
	}
	require.Error(t, (&aftermath{endings: make([]ending, 1)}).wrong(), "one has not ended")
}

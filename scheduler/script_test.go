package scheduler_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/verbs"
)

// costs are of a link on which a message costs as much as five small writes save, and
// 3600 bytes are the least that costs as much to copy at both ends as to write directly.
var costs = verbs.Costs{
	Post: time.Microsecond, Gap: time.Microsecond, Serve: 10 * time.Microsecond,
	Bandwidth: 1e9, CopyLatency: 100 * time.Nanosecond, CopyBandwidth: 6e9,
}

// packet is what a message has room for.
const packet = 16 << 10

func planner(scheme scheduler.Scheme, direct bool) *scheduler.Planner {
	return scheduler.NewPlanner(scheduler.Conditions{Costs: costs, Scheme: scheme, Direct: direct, Packet: packet})
}

// kinds are how scripts write the kinds of operations.
var kinds = map[byte]aggregate.Kind{
	'p': aggregate.Put, 'g': aggregate.Get, 'a': aggregate.Accumulate, 'f': aggregate.Fetch, 's': aggregate.Swap, 'n': aggregate.Notify,
}

// queued makes the operations of a script. "p8" is a put of 8 bytes, far from others, "+p8"
// one just after the operation before, "=p8" one to the same place, "~p8" one from its
// middle on, "!p8" one from memory that is not registered, and "64*g8" are 64 gets.
func queued(t testing.TB, script string) *scheduler.Queue {
	t.Helper()
	var q scheduler.Queue
	far, place, bytes := uint64(0), uint64(0), 0
	for _, word := range strings.Fields(script) {
		times := 1
		if n, each, ok := strings.Cut(word, "*"); ok {
			times, word = number(t, n), each
		}
		like := word[0]
		word = strings.TrimLeft(word, "+=~!")
		kind, known := kinds[word[0]]
		require.True(t, known, word)
		for range times {
			switch like {
			case '+':
				place += uint64(bytes)
			case '~':
				place += uint64(bytes / 2)
			case '=':
			default:
				far += 1 << 24
				place = far
			}
			bytes = number(t, "0"+word[1:])
			o := q.Add(kind, bytes)
			o.Offset, o.Unregistered = place, like == '!'
		}
	}
	return &q
}

func number(t testing.TB, digits string) int {
	t.Helper()
	n, err := strconv.Atoi(digits)
	require.NoError(t, err)
	return n
}

// written is a plan as tests write it: operations by their place in the queue, "2-4" where
// several are merged, those that are packed in brackets.
func written(plan *scheduler.Plan) string {
	var b strings.Builder
	packed := false
	for _, step := range plan.Steps {
		switch {
		case step.Packed && !packed:
			b.WriteString(" [")
		case packed && !step.Packed:
			b.WriteString("] ")
		default:
			b.WriteString(" ")
		}
		packed = step.Packed
		b.WriteString(strconv.Itoa(int(step.First)))
		if step.Count > 1 {
			fmt.Fprintf(&b, "-%d", step.First+step.Count-1)
		}
	}
	if packed {
		b.WriteString("]")
	}
	return strings.TrimSpace(b.String())
}

func without(some scheduler.Scheme) scheduler.Scheme { return scheduler.All &^ some }

// following is the end of an epoch, or nothing.
func following(closing bool) scheduler.Following {
	if closing {
		return scheduler.End
	}
	return scheduler.Nothing
}

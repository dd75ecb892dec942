package perfetto_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
	"github.com/onesided/rma/verbs/sim/perfetto"
)

// What a viewer reads of a trace.
type trace struct {
	DisplayTimeUnit string
	TraceEvents     []struct {
		Ph, Name, S string
		Pid, Tid    int
		Ts, Dur     float64
		Args        map[string]any
	}
}

// traced runs a program of ranks in which each writes to and reads from the next, with
// faults, and gives the file and what passed the links in each direction.
func traced(t testing.TB, seed uint64, rounds int) (file []byte, passed [2]int) {
	const ranks, size = 4, 1 << 16
	s := simtest.New(t, "pcix-2005", seed)
	var out bytes.Buffer
	w := perfetto.NewWriter(&out)
	s.Trace(func(e sim.Event) {
		switch e.Kind {
		case sim.Sent:
			passed[0] += e.Bytes
		case sim.Received:
			passed[1] += e.Bytes
		}
		w.Event(e)
	})
	plan, err := sim.ParseFaults("at 400us stall rank 1 in for 100us\nat 1.5ms slow rank 2 by 3 for 100us")
	require.NoError(t, err)
	require.NoError(t, s.Inject(plan...))
	devices := make([]*sim.Device, ranks)
	regions := make([]verbs.MemoryRegion, ranks)
	for i := range devices {
		devices[i] = s.Open()
		memory, err := devices[i].AllocateMemory(size)
		require.NoError(t, err)
		regions[i], err = devices[i].RegisterMemory(memory, verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite)
		require.NoError(t, err)
	}
	for i, d := range devices {
		d.Go(fmt.Sprint("rank ", i), func() {
			queue, err := d.CreateCompletionQueue(64)
			require.NoError(t, err)
			config := verbs.QueuePairConfig{SendQueue: queue, ReceiveQueue: queue}
			next := (i + 1) % ranks
			pair, err := d.Connect(devices[next].Address(), nil, config)
			require.NoError(t, err)
			until := func(done func() bool) {
				for !done() {
					d.Channel().Sleep(d.Channel().Prepare(), time.Millisecond)
					d.Channel().Finish()
				}
			}
			accepted := false
			until(func() bool {
				var requests [1]verbs.ConnectionRequest
				if d.PollConnections(requests[:]) == 1 {
					_, err := requests[0].Accept(config)
					require.NoError(t, err)
					accepted = true
				}
				return accepted && pair.State() == verbs.StateReady
			})
			s.Go("beside", func() { d.Compute(time.Millisecond) })
			for round := range rounds {
				begun := d.Now()
				d.Compute(5 * time.Microsecond)
				there := regions[next].Remote()
				here := []verbs.Segment{{Memory: regions[i].Memory()[:1<<(round%16)], LKey: regions[i].LKey()}}
				for _, opcode := range []verbs.Opcode{verbs.OpRDMAWrite, verbs.OpRDMARead} {
					_, err := pair.PostSend([]verbs.SendRequest{{Opcode: opcode, Flags: verbs.Signalled, Segments: here, RemoteAddress: there.Address, RKey: there.RKey}})
					require.NoError(t, err)
				}
				left := 2
				inner := d.Now()
				until(func() bool {
					var into [2]verbs.Completion
					left -= queue.Poll(into[:])
					return left == 0
				})
				w.Span(i, "wait \"for\" both\n", inner, d.Now())
				w.Span(i, fmt.Sprint("round ", round), begun, d.Now())
			}
		})
	}
	require.NoError(t, s.Run())
	require.NoError(t, w.Close())
	return out.Bytes(), passed
}

// The file is JSON in which spans of a lane lie apart, or those of programs one in the
// other, and which has every byte that passed a link.
func TestLanes(t *testing.T) {
	file, passed := traced(t, 1, 40)
	var got trace
	require.NoError(t, json.Unmarshal(file, &got))
	require.Equal(t, "ns", got.DisplayTimeUnit)
	type lane struct{ rank, lane int }
	type span struct{ from, until int64 }
	names, spans := map[lane]string{}, map[lane][]span{}
	written := [2]int{}
	seen := map[string]int{}
	for _, e := range got.TraceEvents {
		at := lane{e.Pid, e.Tid}
		switch e.Ph {
		case "M":
			if e.Name == "thread_name" {
				require.NotContains(t, names, at, "named twice")
				names[at] = e.Args["name"].(string)
			}
		case "X":
			require.Contains(t, names, at, "a lane without a name")
			from, length := int64(e.Ts*1000+0.5), int64(e.Dur*1000+0.5)
			spans[at] = append(spans[at], span{from, from + length})
			switch names[at] {
			case "link out":
				written[0] += int(e.Args["bytes"].(float64))
			case "link in":
				written[1] += int(e.Args["bytes"].(float64))
			}
			seen[names[at]+": "+e.Name]++
		case "i":
			seen[e.Name]++
		default:
			t.Fatalf("phase %q", e.Ph)
		}
	}
	require.Equal(t, passed, written)
	require.Equal(t, passed[0], passed[1])
	for _, name := range []string{
		"link out: write to 1", "link in: write from 0", "link out: read request to 1", "link in: read response from 1", "processor: compute", "processor: post write",
		"processor: sleep", "processor: poll", "processor: register", "processor 2: compute", "program: round 7", "program: wait \"for\" both\n",
		"completed read", "placed write", "struck: at 400µs stall rank 1 in for 100µs", "healed: at 1.5ms slow rank 2 by 3 for 100µs",
	} {
		require.NotZero(t, seen[name], "%s: %v", name, seen)
	}
	require.Len(t, names, 4*5)
	for at, in := range spans {
		slices.SortFunc(in, func(a, b span) int {
			if a.from != b.from {
				return int(a.from - b.from)
			}
			if names[at] != "program" {
				// Of two at one time one has no length, as a request to read has.
				return int(a.until - b.until)
			}
			return int(b.until - a.until)
		})
		var open []span
		for _, s := range in {
			for len(open) > 0 && open[len(open)-1].until <= s.from {
				open = open[:len(open)-1]
			}
			if len(open) > 0 {
				require.Equal(t, "program", names[at], "%v in %v", s, open)
				require.LessOrEqual(t, s.until, open[len(open)-1].until)
			}
			open = append(open, s)
		}
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	first, _ := traced(t, 3, 20)
	again, _ := traced(t, 3, 20)
	require.Equal(t, string(first), string(again))
}

// Times are written exactly, however large, and many events are one document.
func TestManyEvents(t *testing.T) {
	var out bytes.Buffer
	w := perfetto.NewWriter(&out)
	const events = 200_000
	for i := range events {
		at := time.Duration(i)*time.Hour/10_000 + 7
		w.Event(sim.Event{Kind: sim.EventKind(i % 16), At: at, Until: at + 1001, Rank: i % 1000, Peer: -1, Opcode: verbs.Opcode(i % 12), Status: verbs.Status(i % 8), Fault: "\x00\xff\"\u2028"})
	}
	require.NoError(t, w.Close())
	var got trace
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Greater(t, len(got.TraceEvents), events)
	require.Contains(t, out.String(), `"ts":360000.007,"dur":1.0011,`)

	out.Reset()
	require.NoError(t, perfetto.NewWriter(&out).Close())
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
}

// A full disk is told by Close.
func TestErrors(t *testing.T) {
	full := errors.New("full")
	reader, writer := io.Pipe()
	require.NoError(t, reader.CloseWithError(full))
	w := perfetto.NewWriter(writer)
	for range 10_000 {
		w.Span(0, "span", 0, 1)
	}
	require.ErrorIs(t, w.Close(), full)
	require.ErrorIs(t, w.Close(), full)

	var out bytes.Buffer
	w = perfetto.NewWriter(&out)
	require.NoError(t, w.Close())
	length := out.Len()
	w.Span(0, "late", 0, 1)
	require.ErrorContains(t, w.Close(), "the file is closed")
	require.Equal(t, length, out.Len())
}

// To write an event allocates nothing.
func TestEventsAllocateNothing(t *testing.T) {
	w := perfetto.NewWriter(io.Discard)
	at := time.Duration(0)
	kinds := []sim.EventKind{sim.Posted, sim.Sent, sim.Received, sim.Placed, sim.Completed, sim.Computed, sim.Polled, sim.Slept}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		for _, kind := range kinds {
			at += 1500
			w.Event(sim.Event{Kind: kind, At: at, Until: at + 1000, Rank: 3, Peer: 5, QueuePair: 9, Task: 4, Bytes: 1 << 20, Request: 1 << 60})
		}
	}))
}

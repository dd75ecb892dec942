package traced_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/timeline"
	"github.com/onesided/rma/internal/traced"
	"github.com/onesided/rma/verbs"
)

// script is a card with a clock and completions that a test sets.
type script struct {
	verbs.Device
	now time.Duration
	// activity grows by growth in each poll.
	activity, growth uint64
	takes            int
	completions      []verbs.Completion
	pairs            uint32
}

func (s *script) Attributes() verbs.Attributes {
	return verbs.Attributes{Name: "script", Virtual: true}
}
func (s *script) Now() time.Duration               { return s.now }
func (s *script) Activity() uint64                 { return s.activity }
func (s *script) Served() uint64                   { return 0 }
func (s *script) Pending() bool                    { return false }
func (s *script) Channel() verbs.CompletionChannel { return s }
func (s *script) Prepare() uint32                  { return 0 }
func (s *script) Finish()                          {}
func (s *script) Wake()                            {}
func (s *script) Close() error                     { return nil }

func (s *script) Sleep(_ uint32, limit time.Duration) { s.now += limit }

func (s *script) CreateCompletionQueue(int) (verbs.CompletionQueue, error) {
	return scriptQueue{s}, nil
}

func (s *script) Connect(string, []byte, verbs.QueuePairConfig) (verbs.QueuePair, error) {
	s.pairs++
	return &scriptPair{script: s, number: s.pairs}, nil
}

type scriptQueue struct{ script *script }

func (q scriptQueue) Close() error { return nil }
func (q scriptQueue) Poll(into []verbs.Completion) int {
	q.script.activity += q.script.growth
	n := copy(into, q.script.completions)
	q.script.completions = q.script.completions[n:]
	return n
}

type scriptPair struct {
	verbs.QueuePair
	script *script
	number uint32
}

var errRefused = errors.New("refused")

func (p *scriptPair) Number() uint32 { return p.number }
func (p *scriptPair) Close() error   { return nil }
func (p *scriptPair) PostSend(requests []verbs.SendRequest) (int, error) {
	if p.script.takes < len(requests) {
		return p.script.takes, errRefused
	}
	return len(requests), nil
}

// A rig is a traced script, with a queue pair.
type rig struct {
	t      testing.TB
	script *script
	device verbs.Device
	trace  *traced.Trace
	queue  verbs.CompletionQueue
	pair   verbs.QueuePair
	into   [16]verbs.Completion
}

func newRig(t testing.TB, records int) *rig {
	r := &rig{t: t, script: &script{takes: 100}}
	r.device, r.trace = traced.New(r.script, traced.Options{Records: records})
	var err error
	r.queue, err = r.device.CreateCompletionQueue(16)
	require.NoError(t, err)
	r.pair = r.connect()
	return r
}

func (r *rig) connect() verbs.QueuePair {
	pair, err := r.device.Connect("there", nil, verbs.QueuePairConfig{SendQueue: r.queue, ReceiveQueue: r.queue})
	require.NoError(r.t, err)
	return pair
}

const (
	write    = verbs.OpRDMAWrite
	read     = verbs.OpRDMARead
	quiet    = verbs.Flags(0)
	signaled = verbs.Signalled
)

func request(id uint64, opcode verbs.Opcode, flags verbs.Flags) verbs.SendRequest {
	return verbs.SendRequest{ID: id, Opcode: opcode, Flags: flags, Segments: []verbs.Segment{{Memory: make([]byte, id)}, {Memory: make([]byte, 100)}}}
}

// post posts requests at a time.
func (r *rig) post(at time.Duration, requests ...verbs.SendRequest) {
	r.script.now = at
	_, err := r.pair.PostSend(requests)
	require.NoError(r.t, err)
}

func (r *rig) complete(at time.Duration, completions ...verbs.Completion) {
	r.script.now, r.script.completions = at, completions
	require.Equal(r.t, len(completions), r.queue.Poll(r.into[:]))
}

func done(id uint64, opcode verbs.Opcode, status verbs.Status) verbs.Completion {
	return verbs.Completion{ID: id, QueuePair: 1, Opcode: opcode, Status: status}
}

// lines returns the events of the file on some lanes, a line each.
func (r *rig) lines(lanes ...string) []string { return r.linesSince(0, lanes...) }

// linesSince returns the lines of a file whose times are relative to origin, a time of the device.
func (r *rig) linesSince(origin time.Duration, lanes ...string) []string {
	var out bytes.Buffer
	w := timeline.NewWriter(&out)
	r.trace.Write(w, 5, "rank 5", r.trace.Began().Add(origin))
	require.NoError(r.t, w.Close())
	var file struct {
		TraceEvents []struct {
			Ph, Name string
			Pid, Tid int
			Ts, Dur  float64
			Args     map[string]any
		}
	}
	require.NoError(r.t, json.Unmarshal(out.Bytes(), &file), out.String())
	names := make(map[int]string)
	var all []string
	for _, e := range file.TraceEvents {
		require.Equal(r.t, 5, e.Pid)
		if e.Name == "thread_name" {
			names[e.Tid] = e.Args["name"].(string)
		}
		if e.Ph == "M" || !slices.Contains(lanes, strings.Fields(names[e.Tid])[0]) {
			continue
		}
		line := fmt.Sprintf("%s: %s %g+%g", names[e.Tid], e.Name, e.Ts, e.Dur)
		for _, key := range []string{"bytes", "requests", "completions", "times", "lost"} {
			if n, ok := e.Args[key]; ok {
				line += fmt.Sprintf(" %v", n)
			}
		}
		all = append(all, line)
	}
	return all
}

func TestARequestLastsUntilItsCompletionIsPolled(t *testing.T) {
	r := newRig(t, 0)
	traced.Name(r.pair, "3")
	r.post(1000, request(1, write, signaled), request(2, read, signaled))
	r.post(2000, request(3, verbs.OpSend, signaled), request(4, verbs.OpFetchAdd, signaled))
	r.complete(3000, done(1, write, verbs.StatusSuccess))
	r.script.growth = 1
	r.complete(4000)
	r.script.growth = 0
	r.complete(4500)
	r.complete(5000, done(2, read, verbs.StatusSuccess), done(3, verbs.OpSend, verbs.StatusSuccess), done(4, verbs.OpFetchAdd, verbs.StatusSuccess))
	r.complete(6000, verbs.Completion{ID: 9, QueuePair: 1, Opcode: verbs.OpReceive, Bytes: 77}, done(8, verbs.OpReceive, verbs.StatusFlushed))
	r.device.Channel().Sleep(0, 1000)
	r.device.Channel().Sleep(0, 0)
	r.trace.Span("step", 500, 6000)
	require.Equal(t, []string{
		"program: step 0.5+5.5",
		"in: read from 3 1+4 102",
		"out: write to 3 1+2 101",
		"processor: post write 1+0 2",
		"out 2: message to 3 2+3 103",
		"in: fetch-add at 3 2+3 104",
		"processor: post message 2+0 2",
		"processor: poll 3+0 1",
		"processor: serve 4+0",
		"processor: poll 5+0 3",
		"processor: sleep 6+1 1",
		"in: receive from 3 6+0 77",
		"processor: poll 6+0 2",
	}, r.lines("program", "processor", "out", "in"))
	require.Zero(t, r.trace.Lost())
}

// Viewers drop events with negative times.
func TestWhatWasBeforeTheOriginIsLeftOutOrCut(t *testing.T) {
	r := newRig(t, 0)
	r.trace.Span("before", 500, 999)
	r.trace.Span("across", 600, 3000)
	r.trace.Span("after", 4000, 5000)
	require.Equal(t, []string{"program: across 0+2", "program: after 3+1"}, r.linesSince(1000, "program"))
}

func TestSleepsWithNothingBetweenAreOne(t *testing.T) {
	r := newRig(t, 0)
	sleep := func(at, limit time.Duration) {
		r.script.now = at
		r.device.Channel().Sleep(0, limit)
	}
	sleep(1000, 1000)
	sleep(22_000, 1000) // the longest look after the first sleep
	sleep(43_001, 1000)
	r.post(44_001, request(1, write, signaled))
	sleep(44_001, 999)
	require.Equal(t, []string{
		"processor: sleep 1+22 2", "processor: sleep 43.001+1 1", "processor: sleep 44.001+0.999 1", "processor: post write 44.001+0 1",
	}, r.lines("processor"))
}

func TestACompletionAnswersForThoseThatAskForNone(t *testing.T) {
	r := newRig(t, 0)
	r.post(1000, request(7, write, quiet), request(7, write, quiet), request(7, write, signaled))
	r.post(2000, request(7, write, quiet), request(7, write, signaled))
	r.complete(3000, done(7, write, verbs.StatusSuccess))
	require.Equal(t, []string{
		"out: write to there 1+2 107", "out: write to there 1+2 107", "out: write to there 1+2 107",
		"out: write to there 2+0 107", "out: write to there: unfinished 2+1 107",
	}, r.lines("out"))
	r.complete(4000, done(7, write, verbs.StatusSuccess))
	require.NotContains(t, strings.Join(r.lines("out"), "\n"), "unfinished")

	// A completion says little about a request that was posted long before.
	r = newRig(t, 0)
	r.post(1000, request(1, write, quiet))
	r.post(2000, request(2, read, quiet))
	r.post(4000, request(3, write, signaled))
	r.complete(6000, done(3, write, verbs.StatusSuccess))
	require.Equal(t, []string{"out: write to there 1+0 101", "in: read from there 2+4 102", "out: write to there 4+2 103"}, r.lines("out", "in"))
}

func TestWhatFailsCompletesByItself(t *testing.T) {
	r := newRig(t, 0)
	r.post(1000, request(1, write, quiet), request(2, write, quiet), request(3, read, quiet), request(4, write, signaled))
	r.complete(2000, done(2, write, verbs.StatusRemoteAccess))
	r.complete(3000, done(3, read, verbs.StatusFlushed), done(4, write, verbs.StatusFlushed))
	require.ElementsMatch(t, []string{
		"out: write to there 1+1 101",
		"out: write to there: remote access error 1+1 102",
		"in: read from there: flushed 1+2 103",
		"out: write to there: flushed 1+2 104",
	}, r.lines("out", "in"))
}

// Goroutines that poll may record their completions in another order.
func TestCompletionsInAnotherOrder(t *testing.T) {
	r := newRig(t, 0)
	r.post(1000, request(1, write, quiet), request(2, write, signaled), request(3, write, quiet), request(4, write, signaled), request(5, write, signaled))
	r.complete(2000, done(4, write, verbs.StatusSuccess))
	r.complete(3000, done(2, write, verbs.StatusSuccess))
	r.complete(4000, done(5, write, verbs.StatusSuccess))
	require.ElementsMatch(t, []string{
		"out: write to there 1+1 101", "out: write to there 1+1 103", "out: write to there 1+1 104",
		"out: write to there 1+2 102", "out: write to there 1+3 105",
	}, r.lines("out"))
}

func TestWhatIsNotTakenIsNotThere(t *testing.T) {
	r := newRig(t, 0)
	r.script.takes = 1
	n, err := r.pair.PostSend([]verbs.SendRequest{request(1, write, signaled), request(2, write, signaled), request(3, write, signaled)})
	require.Equal(t, 1, n)
	require.ErrorIs(t, err, errRefused)
	r.script.takes = 0
	n, err = r.pair.PostSend([]verbs.SendRequest{request(4, write, signaled)})
	require.Zero(t, n)
	require.ErrorIs(t, err, errRefused)
	require.Equal(t, []string{"out: write to there: unfinished 0+0 101", "processor: post write 0+0 1"}, r.lines("out", "processor"))
}

func TestClosingEndsWhatIsOutstanding(t *testing.T) {
	r := newRig(t, 0)
	r.post(1000, request(1, write, signaled))
	r.script.now = 2000
	require.NoError(t, r.pair.Close())
	r.script.now = 3000
	r.pair = r.connect()
	r.post(4000, request(2, read, quiet))
	r.script.now = 6000
	require.NoError(t, r.device.Close())
	r.script.now = 9000
	require.Equal(t, []string{"out: write to there: unfinished 1+1 101", "in: read from there 4+0 102"}, r.lines("out", "in"))
	// This queue pair is closed.
	r.complete(9000, done(1, write, verbs.StatusSuccess))
	require.Len(t, r.lines("out", "in"), 2)
}

func TestTheOldestAreLostWhenTheRingIsFull(t *testing.T) {
	r := newRig(t, 4)
	for i := range 10 {
		begun := time.Duration(i) * 1000
		r.trace.Span(fmt.Sprint("step ", i), begun, begun+1000)
	}
	r.post(1000, request(1, write, signaled))
	r.complete(2000, done(1, write, verbs.StatusSuccess))
	require.EqualValues(t, 6, r.trace.Lost())
	require.Equal(t, []string{
		"program: step 6 6+1", "program: older spans are lost 6+0 6", "program: step 7 7+1", "program: step 8 8+1", "program: step 9 9+1",
	}, r.lines("program"))
	require.Equal(t, []string{"out: write to there 1+1 101"}, r.lines("out"))
}

// With many outstanding requests, the completion of each finds its record.
func TestManyOutstanding(t *testing.T) {
	r := newRig(t, 0)
	const posts, each = 300, 7
	for post := range uint64(posts) {
		var batch []verbs.SendRequest
		for i := range uint64(each) {
			batch = append(batch, verbs.SendRequest{ID: post*each + i, Opcode: write, Flags: signaled})
		}
		r.post(time.Duration(post)*1000, batch...)
		if post >= posts/2 {
			id := (post - posts/2) * each
			for i := range uint64(each) {
				r.complete(time.Duration(post)*1000+500, done(id+i, write, verbs.StatusSuccess))
			}
		}
	}
	lines := r.lines("out")
	require.Len(t, lines, posts*each)
	unfinished := 0
	for _, line := range lines {
		if strings.Contains(line, "unfinished") {
			unfinished++
			continue
		}
		require.Contains(t, line, fmt.Sprintf("+%g ", posts/2+0.5))
	}
	require.Equal(t, posts/2*each, unfinished)
}

func TestTracingAllocatesNothing(t *testing.T) {
	r := newRig(t, 100)
	batch := []verbs.SendRequest{request(1, write, quiet), request(2, read, quiet), request(3, write, signaled)}
	completions := []verbs.Completion{done(3, write, verbs.StatusSuccess), {QueuePair: 1, Opcode: verbs.OpReceive}}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		r.script.now += 1000
		_, _ = r.pair.PostSend(batch)
		r.device.Channel().Sleep(0, 10)
		r.script.completions = completions
		r.queue.Poll(r.into[:])
		r.trace.Span("step", 0, r.script.now)
	}))
	require.NotZero(t, r.trace.Lost())
}

// A program uses a device according to its optional interfaces. So the traced device must have the same ones as the
// inner device.
func TestAbilitiesAreTheInnerOnes(t *testing.T) {
	type plain struct{ verbs.Device }
	type mapper struct{ verbs.Mapper }
	type watcher struct{ verbs.Watcher }
	type server struct{ verbs.Server }
	base := plain{&script{}}
	for _, inner := range []verbs.Device{
		base,
		struct {
			plain
			mapper
		}{plain: base},
		struct {
			plain
			watcher
		}{plain: base},
		struct {
			plain
			server
		}{plain: base},
		struct {
			plain
			mapper
			watcher
		}{plain: base},
		struct {
			plain
			mapper
			server
		}{plain: base},
		struct {
			plain
			watcher
			server
		}{plain: base},
		struct {
			plain
			mapper
			watcher
			server
		}{plain: base},
	} {
		device, _ := traced.New(inner, traced.Options{Records: 1})
		_, maps := inner.(verbs.Mapper)
		_, watches := inner.(verbs.Watcher)
		_, serves := inner.(verbs.Server)
		_, tracedMaps := device.(verbs.Mapper)
		_, tracedWatches := device.(verbs.Watcher)
		_, tracedServes := device.(verbs.Server)
		require.Equal(t, []bool{maps, watches, serves}, []bool{tracedMaps, tracedWatches, tracedServes}, "%T", inner)
	}
	device, _ := traced.New(base, traced.Options{Records: 1})
	require.Zero(t, device.(verbs.Meter).Frames())
	require.Equal(t, time.Second, device.(verbs.Charger).Takes(time.Second))
	device.(verbs.Charger).Copied(1)
	device.(verbs.Charger).Work(0, time.Hour)
}

// In virtual time the processor computes through the device.
func TestComputing(t *testing.T) {
	s := simtest.New(t, "ideal", 1)
	r := &rig{t: t}
	r.device, r.trace = traced.New(s.Open(), traced.Options{})
	s.Go("rank 0", func() {
		ticket := r.device.Channel().Prepare()
		r.device.(verbs.Charger).Work(ticket, 1500)
		r.device.Channel().Sleep(ticket, 500)
		r.device.Channel().Finish()
	})
	require.NoError(t, s.Run())
	require.True(t, r.trace.Began().IsZero())
	require.Equal(t, []string{"processor: compute 0+1.5", "processor: sleep 1.5+0.5 1"}, r.lines("processor"))
	require.Same(t, r.trace, traced.Of(r.device))
	require.Nil(t, traced.Of(s.Open()))
}

package job

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/onesided/rma/internal/progress"
)

// A call that waits for as long as WithStall says tells the logger for which ranks it waits, and in which call each of
// those is. A wait does nothing for that before it has lasted for notedAfter. It is named then, from the stack of its goroutine,
// because a wait for a link or a meeting is far below the call of the program. Its name is shown in the ledger, where
// ranks that map it look; others ask for it, and the background goroutine of package progress answers while the program computes. A call
// that works long without a wait is named when it begins: see Working.

// notedAfter is after how long others see which call waits. Shorter waits allocate nothing for that.
const notedAfter = 100 * time.Millisecond

// DefaultStall is after how long a call that waits says so.
const DefaultStall = 10 * time.Second

// WithStall sets after how long a waiting call logs what it waits for.
func WithStall(d time.Duration) Option { return func(s *Settings) { s.stall = d } }

// stallFromEnvironment is what RMA_STALL says.
func stallFromEnvironment() (time.Duration, error) {
	text := os.Getenv("RMA_STALL")
	if text == "" {
		return DefaultStall, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return DefaultStall, fmt.Errorf("%w: RMA_STALL %q (or WithStall): allowed are durations such as 30s or 2m, and 0 for never", ErrEnvironment, text)
	}
	return d, nil
}

// A waitingCall is a call of the program that sleeps, or works long.
type waitingCall struct {
	name string
	// rank is the one that it waits for, in the job, or -1 if several may end the wait.
	rank atomic.Int32
}

func (c *waitingCall) String() string {
	if rank := c.rank.Load(); rank >= 0 {
		return fmt.Sprintf("%s for rank %d", c.name, rank)
	}
	return c.name
}

// waitingCalls are those of a rank.
type waitingCalls struct {
	mu    sync.Mutex
	calls []*waitingCall
	// shown is where other ranks see the last of them, nil once the World is at its end.
	shown *ledger
}

func (c *waitingCalls) add(call *waitingCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
	c.show()
}

func (c *waitingCalls) remove(call *waitingCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = slices.DeleteFunc(c.calls, func(other *waitingCall) bool { return other == call })
	c.show()
}

// hide has the ledger touched no more.
func (c *waitingCalls) hide() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = nil
}

// show is called with the mutex.
func (c *waitingCalls) show() {
	if c.shown == nil {
		return
	}
	text := ""
	if len(c.calls) > 0 {
		text = c.calls[len(c.calls)-1].String()
	}
	c.shown.showCall(text)
}

// waitFor has a call be for a rank of the job, or for any other if it is -1.
func (c *waitingCalls) waitFor(call *waitingCall, rank int32) {
	if call.rank.Swap(rank) != rank {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.show()
	}
}

// last is the call that began to sleep last, nil if there is none.
func (c *waitingCalls) last() *waitingCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) == 0 {
		return nil
	}
	return c.calls[len(c.calls)-1]
}

// showCall is called by one goroutine of the owner at a time.
func (l *ledger) showCall(text string) {
	l.callVersion.Add(1)
	storeText(l.call[:], text)
	l.callVersion.Add(1)
}

// shownCall is the call that the owner shows, empty if none.
func (l *ledger) shownCall() string {
	// An owner that dies while it writes leaves the version odd.
	for range 1000 {
		version := l.callVersion.Load()
		name := loadText(l.call[:])
		if version%2 == 0 && l.callVersion.Load() == version {
			return name
		}
	}
	return ""
}

// packages are those whose calls have names, with the name that programs know them by: this one does what package world calls.
var packages = func() [3]struct{ path, name string } {
	own := reflect.TypeFor[World]().PkgPath()
	module := strings.TrimSuffix(own, "internal/job")
	return [3]struct{ path, name string }{{module + "world", "world"}, {own, "world"}, {module + "window", "window"}}
}()

// progressPath begins the names of functions in which a call waits, below those of packages.
var progressPath = reflect.TypeFor[progress.Waiter]().PkgPath() + "."

// callOfProgram names the call of the program that this goroutine is in, as in "window.Fence": the outermost exported function of the
// library below the program's own. It is empty in a goroutine of the library.
func callOfProgram() (call string) {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		name, own := exportedName(frame.Function)
		switch {
		case !own && !strings.HasPrefix(frame.Function, "sync.") && !strings.HasPrefix(frame.Function, progressPath):
			return call
		case name != "":
			call = name
		}
	}
	return call
}

// exportedName is what programs call a function of packages, empty if they cannot call it; own reports whether it is of one of those.
func exportedName(function string) (name string, own bool) {
	for _, one := range packages {
		rest, ok := strings.CutPrefix(function, one.path+".")
		if !ok {
			continue
		}
		switch rest {
		case "(*pending).completed":
			// The iterator runs after Completed has returned.
			return one.name + ".Completed", true
		case "(*World).CloseOwn":
			// A World closes its teams, and a server its sessions, in goroutines of the library.
			return one.name + ".Close", true
		}
		parts := strings.Split(strings.NewReplacer("[...]", "", "(*", "", ")", "").Replace(rest), ".")
		last := parts[len(parts)-1]
		if len(parts) > 2 || !unicode.IsUpper(rune(last[0])) || strings.Contains(last, "-") {
			// Below another closure its caller has a frame of its own.
			return "", true
		}
		if one.path == packages[1].path && len(parts) == 2 && parts[0] != "World" && parts[0] != "Meeting" {
			// Of the types of this package programs use only World, and tests Meeting.
			return "", true
		}
		if len(parts) == 2 && unicode.IsUpper(rune(parts[0][0])) && parts[0] != "World" && parts[0] != "Window" {
			last = parts[0] + "." + last
		}
		return one.name + "." + last, true
	}
	return "", false
}

// nameWait names the wait, and shows for whom it is now. Questions that the library asks within a wait have no names.
func (w *World) nameWait(ctx context.Context, s *progress.Sleeper) {
	k := keptOf(s)
	if k.call == nil {
		if k.unnamed {
			return
		}
		name := ""
		if c, ok := ctx.(*within); !ok || !c.asks {
			name = callOfProgram()
		}
		if k.unnamed = name == ""; k.unnamed {
			return
		}
		k.call = &waitingCall{name: name}
		k.call.rank.Store(w.awaitedInJob(s))
		w.waitingCalls.add(k.call)
		if v := w.vigil; v != nil {
			v.callers[w.vigilRank] = w.endpoint
		}
		return
	}
	w.waitingCalls.waitFor(k.call, w.awaitedInJob(s))
}

// Working shows other ranks, until end is called, that this rank is in a call of the program that takes long without a wait:
// to back memory with pages or to give them back.
func (w *World) Working() (end func()) {
	call := &waitingCall{name: callOfProgram()}
	call.rank.Store(-1)
	w.waitingCalls.add(call)
	return func() { w.waitingCalls.remove(call) }
}

// awaitedInJob is the rank that a wait is for by its number in the job, -1 if several may end the wait.
func (w *World) awaitedInJob(s *progress.Sleeper) int32 {
	if s.Rank < 0 {
		return -1
	}
	return int32(w.InJob(s.Rank))
}

// stalled reports whether a wait has lasted for the limit of WithStall and was not reported.
func (w *World) stalled(s *progress.Sleeper) bool {
	limit := w.settings.stall
	return limit > 0 && s.Since != 0 && s.Until-s.Since >= limit && !keptOf(s).reported
}

// reportStall logs the wait, which is for some ranks, or for any other if there are none.
func (w *World) reportStall(s *progress.Sleeper, ranks []int) {
	k := keptOf(s)
	k.reported = true
	if k.call == nil {
		return
	}
	call, waited := k.call.name, w.Now()-s.Since
	tell := func(ctx context.Context) {
		w.logger.Warn("a call waits long", "rank", w.InJob(w.rank), "call", call, "for", waited.Round(time.Millisecond), "waits for", w.describeAwaited(&within{ctx, w, w.Now() + longestCallAsk, true}, ranks))
	}
	if w.virtual() {
		tell(context.Background())
		return
	}
	w.root.reports.start(tell)
}

// reports are the goroutines that ask for a warning what other ranks do. A rank that does not answer holds up nobody, nor the end
// of the World, which is the end of ctx.
type reports struct {
	mu      sync.Mutex
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func newReports() *reports {
	r := new(reports)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// start has f called by one of them, unless the World is at its end.
func (r *reports) start(f func(ctx context.Context)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() == nil {
		r.running.Go(func() { f(r.ctx) })
	}
}

// end returns when there are none any more.
func (r *reports) end() {
	r.mu.Lock()
	r.cancel()
	r.mu.Unlock()
	r.running.Wait()
}

// awaitedBy is the ranks that the wait is for, nil for any other.
func awaitedBy(s *progress.Sleeper) []int {
	if s.Rank < 0 {
		return nil
	}
	return []int{s.Rank}
}

const (
	// mostAwaited is how many ranks a report names.
	mostAwaited = 8
	// longestCallAsk is how long it waits for their answers.
	longestCallAsk = 5 * time.Second
)

// describeAwaited names ranks that a call waits for, and the call that each is in, or that a rank has not answered when ctx ends.
func (w *World) describeAwaited(ctx context.Context, ranks []int) string {
	var text strings.Builder
	if len(ranks) == 0 {
		for rank := range w.size {
			if rank != w.rank {
				ranks = append(ranks, rank)
			}
		}
		if len(ranks) != 1 {
			text.WriteString("any of ")
		}
	}
	named := ranks[:min(len(ranks), mostAwaited)]
	for i, state := range w.statesOf(ctx, named) {
		if i > 0 {
			text.WriteString(", ")
		}
		fmt.Fprintf(&text, "rank %d (%s)", w.InJob(named[i]), state)
	}
	if more := len(ranks) - len(named); more > 0 {
		fmt.Fprintf(&text, " and %d more", more)
	}
	return text.String()
}

// statesOf says what each of some ranks does.
func (w *World) statesOf(ctx context.Context, ranks []int) []string {
	states, asked := make([]string, len(ranks)), make([]*inquiry, len(ranks))
	for i, rank := range ranks {
		switch {
		case rank == w.rank:
			states[i] = "this rank itself"
		case w.Failure(rank) != nil:
			states[i] = "has failed"
		case w.virtual():
			states[i] = w.vigil.stateOf(w.vigilRanks[w.InJob(rank)], w.vigilRanks)
		case !w.Mapped(rank):
			asked[i], _ = w.inquire(ctx, rank, &Message{Kind: kindCall}, make([]byte, callBytes))
		}
	}
	for i, rank := range ranks {
		name, answers := "", true
		switch {
		case states[i] != "":
			continue
		case w.Mapped(rank):
			name, answers = w.shownCallOf(ctx, rank)
		default:
			if answers = asked[i] != nil && asked[i].answered(ctx); answers {
				name, _, _ = strings.Cut(string(asked[i].answer), "\x00")
			}
		}
		switch {
		case name != "":
			states[i] = "in " + strings.ToValidUTF8(name, "?")
		case w.Gone(rank):
			states[i] = "has closed its World"
		case !answers && w.root.reports.ctx.Err() != nil:
			states[i] = "had not answered when this rank closed its World"
		case !answers:
			states[i] = "does not answer"
		default:
			states[i] = inNoCall
		}
	}
	return states
}

const inNoCall = "in no call of the library"

// shownCallOf is the call that a rank shows which this one maps, or has a chance to.
func (w *World) shownCallOf(ctx context.Context, rank int) (name string, answers bool) {
	number := w.InJob(rank)
	w = w.root
	if w.approach(ctx, "", number, func() error { return w.Failure(number) }) != nil {
		return "", false
	}
	l, err := w.ledgerOf(number)
	if err != nil {
		return "", false
	}
	return l.shownCall(), true
}

// callBytes is the answer that names a call, ended by zeros.
const callBytes = 8 * len(ledger{}.call)

// answerCall answers which call of the program this rank is in.
func (w *World) answerCall(l *Link) {
	var answer [callBytes]byte
	if call := w.waitingCalls.last(); call != nil {
		copy(answer[:], call.String())
	}
	l.Answer(answer[:])
}

package job

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/onesided/rma/internal/timeline"
	"github.com/onesided/rma/internal/traced"
	"github.com/onesided/rma/verbs"
)

// WithTrace names the file to which this rank adds a trace when its World is closed.
func WithTrace(file string) Option { return func(s *Settings) { s.trace = file } }

// A tracing is what a rank notes for a file.
type tracing struct {
	file string
	// job is the same on all ranks of a job, and in the Worlds that Shrink makes of it;
	// worlds counts these.
	job    string
	worlds int
	trace  *traced.Trace
	// ahead is how far the clock of the network card is before that of Now.
	ahead time.Duration
}

// checkTrace tells whether there can be a trace, if one is wanted, of a rank that uses the
// network or does not.
func (s *Settings) checkTrace(network bool) error {
	var err error
	switch {
	case s.trace == "":
		return nil
	case network:
		err = timeline.Check(s.trace)
	default:
		err = fmt.Errorf("%q: all ranks map each other's memory, and loads and stores are not traced: have them use the network, by RMA_DEVICE=%s", s.trace, tcpDevice)
	}
	return traceError(err)
}

func traceError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: RMA_TRACE (or WithTrace): %w", ErrEnvironment, err)
}

// withTrace gives the network card, of which is noted what passes through it if that is
// wanted.
func (s *Settings) withTrace(network verbs.Device) verbs.Device {
	if s.trace == "" {
		return network
	}
	device, _ := traced.New(network, traced.Options{})
	return device
}

// jobOf names a job by where its ranks are found.
func jobOf(texts []string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return hex.EncodeToString(sum[:8])
}

// beginTrace begins the file, if there is to be one.
func (w *World) beginTrace(job string, worlds int) error {
	file, network := w.settings.trace, w.cards[networkCard]
	if file == "" {
		return nil
	}
	t := &tracing{file: file, job: job, worlds: worlds, trace: traced.Of(network.device)}
	t.ahead = network.device.Now() - w.Now()
	w.tracing, w.span = t, t.span
	return traceError(t.write(nil))
}

func (t *tracing) write(write func(*timeline.Writer, time.Time)) error {
	return timeline.Append(t.file, t.job, t.trace.Began(), write)
}

func (t *tracing) span(name string, from, until time.Duration) {
	t.trace.Span(name, from+t.ahead, until+t.ahead)
}

// endTrace writes what the rank has done, when it is over.
func (w *World) endTrace() error {
	t := w.tracing
	if t == nil {
		return nil
	}
	name := "rank " + strconv.Itoa(w.rank)
	if t.worlds > 0 {
		name += fmt.Sprintf(" of the %d that were left", w.size)
	}
	err := t.write(func(to *timeline.Writer, origin time.Time) {
		t.trace.Write(to, t.worlds*MaxRanks+w.rank, name, origin)
	})
	if err != nil {
		return fmt.Errorf("world: Close: RMA_TRACE (or WithTrace): %w", err)
	}
	return nil
}

// Span adds a span of the program to the trace of this rank.
func (w *World) Span(name string, from, until time.Duration) {
	if w.span != nil {
		w.span(name, from, until)
	}
}

// BeginSpan is Now where there is a trace or a hook, for EndSpan. Without either both cost next to nothing.
func (w *World) BeginSpan() time.Duration {
	if w.span == nil && w.settings.hook == nil {
		return 0
	}
	return w.Now()
}

// EndSpan reports a call of the program that BeginSpan has begun to the trace and the hook.
func (w *World) EndSpan(name string, begun time.Duration) { w.EndSpanOf(0, name, begun) }

// EndSpanOf is EndSpan of a call of a window, which has a number.
func (w *World) EndSpanOf(window uint32, name string, begun time.Duration) {
	w.endStep(name, begun)
	w.reportCall(window, name, begun)
}

// reportCall reports a call of the program to the hook.
func (w *World) reportCall(window uint32, name string, begun time.Duration) {
	if hook := w.settings.hook; hook != nil {
		hook(&Event{Call: name, Rank: w.InJob(w.rank), Begun: begun, Ended: w.Now(), Window: window})
	}
}

// endStep adds to the trace what BeginSpan has begun.
func (w *World) endStep(name string, begun time.Duration) {
	if w.span != nil {
		w.Span(name, begun, w.Now())
	}
}

package verbstest

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
)

// A card without a defect passes, also if it has to be polled.
func TestCard(t *testing.T) {
	t.Run("plain", func(t *testing.T) {
		n := newNetwork("")
		Run(t, Config{Open: n.Open, Kill: kill})
		// TestDefects leaves out none that a card can have.
		for _, d := range defects {
			delete(n.asked, d.defect)
		}
		for defect := range n.asked {
			t.Errorf("no case is tried on a card with the defect %q", defect)
		}
	})
	t.Run("driven", func(t *testing.T) {
		Run(t, Config{Open: newNetwork("").Open, Driven: true, Variant: []string{"Channel", "Serving", "Goroutines"}})
	})
}

// Where Config.Sleep is set nobody sleeps otherwise.
func TestCardThroughSleep(t *testing.T) {
	n := newNetwork("")
	Run(t, Config{
		Variant: []string{"Channel"},
		Open: func(t testing.TB) verbs.Device {
			c := n.Open(t).(*card)
			return sleepless{c, sleeplessBell{&c.bell, t}}
		},
		Sleep: func(device verbs.Device, ticket uint32, limit time.Duration) {
			device.(sleepless).bell.Sleep(ticket, limit)
		},
	})
}

type sleepless struct {
	*card
	channel verbs.CompletionChannel
}

func (s sleepless) Channel() verbs.CompletionChannel { return s.channel }

type sleeplessBell struct {
	*bell
	t testing.TB
}

func (s sleeplessBell) Sleep(uint32, time.Duration) { s.t.Error("Sleep was called past Config.Sleep") }

// A far side that is reached through steps over a pipe plays the same cases.
func TestCardOverPipe(t *testing.T) {
	n := newNetwork("")
	Run(t, Config{Open: n.Open, link: func(testing.TB) (*link, error) { return pipe(n), nil }})
}

func kill(device verbs.Device) { device.(*card).die() }

// pipe serves steps with cards of the network.
func pipe(n *network) *link {
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	var mu sync.Mutex
	var current verbs.Device
	served := make(chan error, 1)
	go func() {
		served <- ServePeer(inRead, outWrite, func() (verbs.Device, error) {
			mu.Lock()
			defer mu.Unlock()
			current = n.Open(nil)
			return current, nil
		})
		_ = outWrite.Close()
	}()
	return &link{
		in:  inWrite,
		out: outRead,
		kill: func() {
			mu.Lock()
			defer mu.Unlock()
			kill(current)
			_ = inWrite.Close()
		},
		wait: func() error { return <-served },
	}
}

// Each defect of a card is caught by the case that is there for it, and by
// others that are not named here.
var defects = []struct{ defect, by string }{
	{"what arrives is no activity", "Serving/what is served counts as activity"},
	{"what is served is not counted", "Serving/what peers wait for is counted"},
	{"what is sent is counted as served", "Serving/what peers wait for is counted"},
	{"the clock goes back", "Device/the clock never goes back"},
	{"Copy tells the wrong length", "Device/copy"},
	{"absurd memory is a nameless error", "Memory/more memory than there is"},
	{"memory is not aligned", "Memory/allocated memory is zeroed and aligned"},
	{"memory is handed out twice", "Memory/freed memory is nobody's"},
	{"memory is not zeroed again", "Memory/memory that is used again is zeroed again"},
	{"memory is freed twice", "Memory/memory is freed once"},
	{"a region is deregistered twice", "Memory/a region is deregistered once"},
	{"a weak region is for peers", "Memory/a weak region does not keep memory of the program alive"},
	{"a weak region has its memory", "Memory/a weak region does not keep memory of the program alive"},
	{"a weak region keeps its memory", "Memory/a weak region does not keep memory of the program alive"},

	{"the key is not checked", "Access/write with a wrong key"},
	{"the key is not checked", "Access/read with the key of another region"},
	{"keys are good on every device", "Access/fetch and add with a key of the requester's device"},
	{"keys are good on every device", "Access/write with a key of a third device"},
	{"the right is not checked", "Access/read without the right"},
	{"the right is not checked", "Access/compare and swap without the right"},
	{"the right is not checked", "Access/write with immediate to a region without remote rights"},
	{"the range is checked with overflow", "Access/write at an address whose end overflows"},
	{"the range is checked at its beginning", "Access/write across the end of the region"},
	{"the range is checked at its beginning", "Access/a long write one byte past the end"},
	{"the range is checked at its beginning", "Access/fetch and add across the end of the region"},
	{"a write is placed before it is checked", "Access/write without the right"},
	{"a deregistered region is served", "Access/write to a deregistered region"},
	{"a stale key works for the next region", "Access/write with the key of a dead region over the same memory"},
	{"an error fails every queue pair", "Access/read with a wrong key"},
	{"the queue pair goes on after an error", "Access/a failure stops what was posted behind it"},
	{"failures of unsignalled requests are silent", "Access/failures of unsignalled requests complete"},
	{"nothing is flushed", "Access/a failure stops what was posted behind it"},
	{"nothing is flushed", "Closing/a closed queue pair is seen by its peer"},
	{"segments are not checked", "Segments/memory of another region"},
	{"segments are not checked", "Segments/a receive into a region without LocalWrite"},
	{"messages have no limit", "Segments/a message longer than MaxMessage"},

	{"addresses hold a space", "Device/addresses"},
	{"the last byte is dropped", "Transfer/write"},
	{"the last byte is dropped", "Transfer/send"},
	{"the last byte is dropped", "Transfer/read"},
	{"the last byte is dropped", "Programs/seed 0"},
	{"immediate data is lost", "Transfer/write with immediate"},
	{"immediate data is lost", "Transfer/send with immediate"},
	{"immediate data needs no receive", "Order/a write with immediate waits in order for its receive"},
	{"a batch is reordered", "Order/one completion answers for all earlier unsignalled requests"},
	{"a batch is reordered", "Goroutines/batches of several goroutines stay together"},
	{"a batch is reordered", "Programs/seed 1"},
	{"words overtake", "Order/words that are looked at show what was written before"},
	{"sends overtake", "Order/messages arrive in the order in which they were sent"},
	{"every fifth completion comes twice", "Order/completions come in the order of requests"},
	{"every fifth completion comes twice", "Transfer/both ends request at once"},
	{"unsignalled requests complete", "Order/one completion answers for all earlier unsignalled requests"},
	{"polling takes the newest first", "Order/completions come in the order of requests"},
	{"all queue pairs have one number", "Order/completions name their queue pair in a queue of several"},

	{"inline data is read late", "Limits/inline data is the caller's again at once"},
	{"the caller's segments are kept", "Transfer/send before its receive"},
	{"a long message is cut", "Limits/a message longer than its receive"},
	{"a long message spills", "Limits/a message longer than its receive"},
	{"a full queue tells the wrong count", "Limits/more requests than MaxSends wait for acceptance"},
	{"queues are never full", "Limits/more requests than MaxSends wait for acceptance"},
	{"queues are never full", "Limits/more receives than MaxReceives"},
	{"unsignalled requests are not counted", "Limits/more unsignalled requests than MaxSends"},
	{"a queue overflows in silence", "Limits/a queue of sends overflows"},
	{"a queue overflows in silence", "Limits/a queue of receives overflows"},

	{"the hello ends at a zero", "Connections/the hello arrives as it was said"},
	{"a hello that is too long is cut", "Connections/a hello that is too long is rejected"},
	{"a connection to nowhere waits", "Connections/addresses where nobody is"},
	{"requests before acceptance are lost", "Connections/requests wait for acceptance"},
	{"a rejection gives no reason", "Connections/a rejection gives its reason"},
	{"a closed queue pair goes unnoticed", "Closing/a closed queue pair is seen by its peer"},
	{"an orderly end is taken for a death", "Closing/a closed queue pair is seen by its peer"},
	{"an orderly end is taken for a death", "Closing/a severed connection has ended cleanly on both sides"},
	{"a death is taken for an orderly end", "Closing/a dead device is seen by who sends to it"},
	{"a severed connection goes unnoticed", "Closing/a severed connection has ended cleanly on both sides"},
	{"what comes after Sever is carried out", "Closing/after a severance nothing of the peer is carried out"},
	{"every fifth completion comes twice", "Closing/what was posted before the peer closes ends once"},
	{"nothing is flushed", "Closing/what was posted before the peer closes ends once"},
	{"a closed device goes unnoticed", "Closing/a closed device is seen by its peers"},
	{"a device is closed twice", "Closing/a closed device rejects requests"},
	{"a death goes unnoticed", "Closing/a watcher is told once of a device that is closed"},
	{"a death is told twice", "Closing/a watcher is told once of a device that dies"},
	{"an earlier death is not told", "Closing/a watcher is told of a device that is gone already"},
	{"a queue closes under its queue pairs", "Closing/a completion queue with queue pairs does not close"},
	{"a closed queue takes queue pairs", "Closing/a closed completion queue takes no queue pair"},
	{"unknown flags are ignored", "Segments/a flag that there is not"},
	{"a closed queue pair takes requests", "Closing/a closed queue pair takes nothing"},
	{"a watch cannot be stopped", "Closing/a watch that was stopped tells nothing"},

	{"a ring before the sleep is lost", "Channel/a ring between Prepare and Sleep"},
	{"completions do not ring", "Channel/messages wake sleepers on both sides"},
	{"only one sleeper wakes", "Channel/one ring wakes all sleepers"},
	{"sleepers do not sleep", "Channel/a sleeper sleeps"},
	{"the limit of a sleep is ignored", "Channel/a sleep ends at its limit"},

	{"neighbors cannot ring", "Mapping/a ring from a neighbor wakes"},
	{"neighbors are not cached", "Mapping/neighbors are cached and checked"},
	{"Map checks nothing", "Mapping/what may not be mapped"},
	{"Map gives a copy", "Mapping/mapped memory is the same bytes"},
	{"atomics are not atomic", "Atomics/several queue pairs add"},
	{"atomics are not atomic", "Atomics/several devices add"},
	{"polling allocates", "Goroutines/posting and polling a write"},
}

func TestDefects(t *testing.T) {
	for _, d := range defects {
		t.Run(d.defect+"/"+d.by, func(t *testing.T) {
			switch {
			case testsize.Race && d.defect == "polling allocates":
				t.Skip("skipped: the race detector allocates itself; the run without it looks")
			case testsize.Race && d.defect == "words overtake":
				t.Skip("skipped: what a card with the defect writes is a race; the run without the detector looks")
			}
			// The limit of a case that waits in vain is virtual.
			synctest.Test(t, func(t *testing.T) {
				r := record(t, Config{Open: newNetwork(d.defect).Open, Kill: kill, Limit: await.Limit}, d.by)
				if !r.Failed() {
					t.Errorf("a card with the defect %q passed %q: %s", d.defect, d.by, r.said())
				}
			})
		})
	}
}

// record runs one case against a substitute for testing.TB.
func record(t testing.TB, config Config, path string) *recorder {
	t.Helper()
	for _, g := range suite(0, plainPrograms) {
		for _, c := range g.cases {
			if g.name+"/"+c.name == path {
				r := &recorder{TB: t}
				r.run(func() { c.run(&bench{TB: r, config: config}) })
				return r
			}
		}
	}
	t.Fatalf("there is no case %q", path)
	return nil
}

// A recorder takes down what a case says about a device that should fail it.
type recorder struct {
	testing.TB

	mu              sync.Mutex
	failed, skipped bool
	lines           []string
	cleanups        []func()
}

// run runs body as the testing package does: to its end, to FailNow, or to a
// panic, which a broken device may well cause.
func (r *recorder) run(body func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer r.clean()
		defer r.recover()
		body()
	}()
	<-ended
}

func (r *recorder) recover() {
	if p := recover(); p != nil {
		r.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

func (r *recorder) clean() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

func (r *recorder) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

func (r *recorder) Log(arguments ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintln(arguments...))
}

func (r *recorder) Fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
}

func (r *recorder) SkipNow() {
	r.mu.Lock()
	r.skipped = true
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) Helper()                              {}
func (r *recorder) Cleanup(f func())                     { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Logf(format string, arguments ...any) { r.Log(fmt.Sprintf(format, arguments...)) }
func (r *recorder) Error(arguments ...any)               { r.Log(arguments...); r.Fail() }
func (r *recorder) Errorf(format string, arguments ...any) {
	r.Log(fmt.Sprintf(format, arguments...))
	r.Fail()
}
func (r *recorder) Fatal(arguments ...any) { r.Log(arguments...); r.FailNow() }
func (r *recorder) Fatalf(format string, arguments ...any) {
	r.Log(fmt.Sprintf(format, arguments...))
	r.FailNow()
}
func (r *recorder) Skip(arguments ...any) { r.Log(arguments...); r.SkipNow() }
func (r *recorder) Skipf(format string, arguments ...any) {
	r.Log(fmt.Sprintf(format, arguments...))
	r.SkipNow()
}

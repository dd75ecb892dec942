package progress_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/eventchannel"
	"github.com/onesided/rma/internal/progress"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/verbs/tcp"
)

// endless is a channel whose sleeps end by a wake only.
type endless struct{ verbs.CompletionChannel }

func (e endless) Sleep(ticket uint32, _ time.Duration) { e.CompletionChannel.Sleep(ticket, -1) }

// waking is a channel of this process that is rung only if somebody sleeps.
type waking struct{ *eventchannel.Channel }

func (w waking) Wake() { w.WakeIfSleeping() }

// armedCard is a card, and its channel, that announces only the next event after it was armed.
type armedCard struct {
	waking
	armed  atomic.Bool
	events atomic.Int64
}

func (c *armedCard) Prepare() uint32 {
	ticket := c.waking.Prepare()
	c.armed.Store(true)
	return ticket
}

func (c *armedCard) happen() {
	c.events.Add(1)
	if c.armed.Swap(false) {
		c.Wake()
	}
}

// stressed is how many steps each wait waits for.
const stressed = 2000

// Waits sleep without end for what a Source finds, what other goroutines store, and each other. None sleeps for ever: the card
// announces little, and other goroutines have the mutex now and then.
func TestStress(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: with -short nothing is stressed")
	}
	fabric, err := shm.NewFabric().Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, fabric.Close()) }()
	network, err := tcp.Open(tcp.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, network.Close()) }()
	card := &armedCard{waking: waking{eventchannel.New()}}
	for name, c := range map[string]struct {
		home, network verbs.CompletionChannel
		card          *armedCard
	}{
		"armed":         {card, card, card},
		"memory":        {fabric.Channel(), fabric.Channel(), new(armedCard)},
		"network":       {network.Channel(), network.Channel(), new(armedCard)},
		"memory, armed": {fabric.Channel(), card, card},
	} {
		for _, limits := range []progress.Limits{{Oversubscribed: true}, {SpinRounds: 3, RelaxedIterations: 3}} {
			t.Run(name, func(t *testing.T) {
				begun := time.Now()
				limits.LongestSleep = -1
				config := progress.Config{Home: endless{c.home}, Network: endless{c.network}, Now: func() time.Duration { return time.Since(begun) }, Limits: limits}
				// Where it is not needed, the background goroutine would find what is lost.
				stress(t, progress.New(config), c.card, c.network != c.home)
			})
		}
	}
}

func stress(t *testing.T, e *progress.Engine, card *armedCard, background bool) {
	var found, stored, passed atomic.Int64
	e.Register(progress.SourceFunc(func(int) int {
		n := card.events.Swap(0)
		// What happens now is not found by this poll.
		runtime.Gosched()
		found.Add(n)
		return int(n)
	}))
	if background {
		e.StartBackground()
		defer e.Close()
	}
	wait := func(word *atomic.Int64, n int64) {
		wait := e.NewWaiter(nil)
		defer wait.Finish()
		for word.Load() < n && wait.Pause(t.Context()) == nil {
		}
	}
	var waits, others sync.WaitGroup
	// Each of three has the next do a step.
	waits.Go(func() {
		for i := range int64(stressed) {
			happen(&others, e, card)
			wait(&found, i+1)
			stored.Store(i + 1)
			e.Wake()
			wait(&passed, i+1)
		}
	})
	waits.Go(func() {
		for i := range int64(stressed) {
			wait(&stored, i+1)
			passed.Store(i + 1)
			e.Wake()
		}
	})
	waits.Go(func() {
		for i := int64(10); i < stressed; i += 10 {
			wait(&passed, i)
		}
	})
	waits.Wait()
	// They have a part in this test only: the next has the same card.
	others.Wait()
	require.EqualValues(t, stressed, found.Load())
}

// happen has an event, from another thread as those of a card are, while two goroutines have the mutex, each once. A card
// without a channel of its own wakes the sleepers.
func happen(others *sync.WaitGroup, e *progress.Engine, card *armedCard) {
	others.Go(func() { e.PollUncounted() })
	others.Go(func() { e.Exclude(runtime.Gosched) })
	others.Go(func() {
		if card.Channel != nil {
			card.happen()
			return
		}
		card.events.Add(1)
		e.Wake()
	})
}

package job

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/logqueue"
	"github.com/onesided/rma/verbs"
)

// An endpoint is what a rank has but once, and what all Worlds that it is in share: that of
// the job, and those of teams. It has the devices, and makes progress for all of them.
type endpoint struct {
	// progress is held by who makes progress.
	progress sync.Mutex
	// worlds are those that are not closed, that of the job first. They are replaced by
	// others, with the mutex of progress. lastContext is the highest of the contexts of all
	// that there have been.
	worlds      atomic.Pointer[[]*World]
	lastContext uint32

	// polled, callers, segment and received are what progress has in hand.
	polled   [16]verbs.Completion
	callers  [4]verbs.ConnectionRequest
	segment  [1]verbs.Segment
	received [1]verbs.ReceiveRequest

	// linkLetter is how long a letter of a link is.
	linkLetter int
	// cards are the devices that this rank has opened, by kind; home is the one
	// that window memory comes from and on whose channel callers sleep.
	cards   [cardKinds]*card
	home    *card
	channel verbs.CompletionChannel
	// logger writes to logs. The program's logger may block: progress does not wait for it, and Close does for a limited time only.
	logs   *logqueue.Queue
	logger *slog.Logger
	// settings and reopen are for the World that Shrink makes. reopen opens its devices, for the ranks that may be in it.
	settings Settings
	reopen   func(ctx context.Context, r rankCounts) ([cardKinds]verbs.Device, error)

	// apart tells that ranks need not be of this process, sharing that this one maps the
	// memory of those on its host.
	apart, sharing bool
	// networkName is the name of the device that reaches every rank.
	networkName string
	// registered are the program's regions.
	registered registered
	// charger is the card where time is virtual, and vigil that of its job; else they are nil.
	charger verbs.Charger
	vigil   *vigil
	// vigilRank is this rank in the job that began, before any Shrink.
	vigilRank int
	// vigilRanks are those of the job in the one that began.
	vigilRanks []int
	// crowded: more ranks share this one's cores than these are. rooted: on any of the
	// job's machines, so that all meet at the root.
	crowded, rooted bool
	spinRounds      int
	// spinLooks and relaxedLooks are those of a round.
	spinLooks, relaxedLooks int
	// yield lets others run: those that this rank waits for. yields is how often that is
	// tried in a wait.
	yield  func()
	yields int
	// letters are those of links.
	letters slots

	// driver is the goroutine of drive; polls counts what others do for it, and
	// they wake it by doze.
	driver  sync.WaitGroup
	driving bool
	stopped atomic.Bool
	// polls counts those made, credit what counts as so many.
	polls, credit atomic.Uint64
	doze          chan struct{}
	// waiting counts the waits that look after the network, although, where ranks are
	// crowded, others may have the processor for long between two of their polls. waited is
	// when the last of them ended.
	waiting atomic.Int32
	waited  atomic.Int64
	// demand is for the driver.
	demand demand
	// retries belong to progress; retrying tells that there are some. noRetries is empty,
	// with place for them.
	retries, noRetries []func() bool
	retrying           atomic.Bool
	news               news
	// ending are links whose failure is about to be recorded, put off that often. They
	// belong to progress.
	ending  []*Link
	putOffs int
	// fallen tells that a link was ended that has not been closed, unseen that the card of a
	// rank has.
	fallen, unseen atomic.Bool
	errands        errands
	// lackTold is until when attend does not tell again that this rank lacks something.
	lackTold atomic.Int64
	// dialing are the links that are being made; they belong to progress. shortage is the
	// last reason of this rank's own for which one could not be.
	dialing  []*Link
	shortage atomic.Pointer[linkError]

	// shrunk are the Worlds that Shrink has made of those of this endpoint. They belong to progress.
	shrunk []*World

	// accounts are of the table at the end.
	accountsMu sync.Mutex
	accounts   []Account
	// statsPipe is where it goes, if that is a named pipe.
	statsPipe *os.File
	// sleeps counts the sleeps of waits, slept their nanoseconds.
	sleeps, slept atomic.Uint64

	// tracing is nil if nothing is to be traced, in virtual time always; span adds to the trace,
	// and is nil if there is none.
	tracing *tracing
	span    func(name string, from, until time.Duration)

	waitingCalls waitingCalls

	// telling is what tells ranks of this host of failures. It may wait for one that does
	// not answer, which the end of the device ends: it is waited for behind that.
	telling *sync.WaitGroup
}

// newEndpoint is that of a rank of a job of so many.
func newEndpoint(size int, b *base, s Settings) *endpoint {
	e := &endpoint{
		linkLetter: linkLetter(size), logs: logqueue.New(s.logger), settings: s,
		cards: b.cards, home: b.home, sharing: b.home.kind == sharedCard && b.home.mapper != nil, channel: b.home.device.Channel(),
		yield: runtime.Gosched, yields: mostYields,
		doze: make(chan struct{}, 1),
	}
	e.logger = e.logs.Logger()
	if b.home.attributes.Virtual {
		e.charger, _ = b.home.device.(verbs.Charger)
	}
	if c := e.cards[networkCard]; c != nil && s.usesRings(c.attributes.Virtual) {
		c.rings = newRings(c.device, size)
	}
	e.letters = slots{cards: &e.cards, length: e.linkLetter}
	return e
}

// setCrowded has the World wait as suits the number of ranks of the job here.
func (w *World) setCrowded(crowded, rooted bool) {
	w.crowded, w.rooted = crowded, rooted
	if network := w.cards[networkCard]; network != nil {
		// A look without a Poll sees only what ranks that are mapped have done.
		w.spinLooks, w.relaxedLooks = 0, 0
		mixed := w.mapsOthers()
		if mixed {
			w.spinLooks = mixedLooks
		}
		took := pollTime
		if network.server != nil {
			looks := network.server.Dwell(!mixed && !crowded)
			took += time.Duration(looks-1) * anotherLook
		}
		switch {
		case crowded:
			if w == w.root {
				// Who waits gives the core away at once.
				network.rings = nil
			}
		case network.attributes.Virtual && network.rings != nil:
			w.spinRounds = network.rings.rounds
		default:
			w.spinRounds = int(network.attributes.Spin / took)
		}
		return
	}
	w.spinLooks, w.relaxedLooks = spinRound, relaxedRound
	if !crowded {
		w.spinRounds = int(w.home.attributes.Spin / (spinRound * lookTime))
	}
}

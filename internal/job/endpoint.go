package job

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/logqueue"
	"github.com/onesided/rma/internal/progress"
	"github.com/onesided/rma/internal/registration"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

// An endpoint is what a rank has but once, and what all Worlds that it is in share: that of
// the job, and those of teams. It has the devices, and makes progress for all of them.
type endpoint struct {
	// engine makes progress, and its mutex is that of progress. Waits sleep on the channel of home.
	engine *progress.Engine
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

	// linkLetter is the length of a link's letter and of an eager buffer of the registry.
	linkLetter int
	// registry is what this rank has registered with its devices.
	registry *registration.Registry
	// cards are the devices that this rank has opened, by kind; home is the one
	// that window memory comes from and on whose channel callers sleep.
	cards [cardKinds]*card
	home  *card
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
	// charger is the card where time is virtual, and vigil that of its job; else they are nil.
	charger verbs.Charger
	vigil   *vigil
	// vigilRank is this rank in the job that began, before any Shrink.
	vigilRank int
	// vigilRanks are those of the job in the one that began.
	vigilRanks []int
	// rooted is set if more ranks than cores share any machine of the job: then all ranks meet at the root.
	rooted bool
	news   news
	// ending are links whose failure is about to be recorded, and putOffs is how often that was put off. due is the number
	// of those that were there when the poll began. They belong to progress.
	ending       []*Link
	due, putOffs int
	// fallen tells that a link was ended that has not been closed, unseen that the card of a
	// rank has.
	fallen, unseen atomic.Bool
	// lackTold is until when attend does not tell again that this rank lacks something.
	lackTold atomic.Int64
	// dialing are the links that are being made; they belong to progress.
	dialing []*Link

	// shrunk are the Worlds that Shrink has made of those of this endpoint. They belong to progress.
	shrunk []*World

	// accounts are of the table at the end.
	accountsMu sync.Mutex
	accounts   []Account
	// statsPipe is where it goes, if that is a named pipe.
	statsPipe *os.File

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
		cards: b.cards, home: b.home, sharing: b.home.kind == sharedCard && b.home.mapper != nil,
	}
	e.logger = e.logs.Logger()
	if b.home.attributes.Virtual {
		e.charger, _ = b.home.device.(verbs.Charger)
	}
	if c := e.cards[networkCard]; c != nil && s.usesRings(c.attributes.Virtual) {
		c.rings = newRings(c.device, size)
	}
	e.registry = registration.New(b.devices, registration.Config{
		Protocols: transfer.All &^ s.tuning.NoProtocols, Kept: s.kept, EagerBytes: e.linkLetter, Virtual: e.charger != nil, Log: e.logger,
	})
	for kind, c := range e.cards {
		if c != nil {
			c.memory = e.registry.Card(cardKind(kind))
		}
	}
	e.engine = progress.New(e.progressConfig())
	return e
}

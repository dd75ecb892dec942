package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/progress"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/tcp"
)

// An Exchange hands every rank a text of each, its own in its own place. It is called
// by all ranks, the same number of times, and returns when all have called it, or with
// an error when ctx ends. Texts are printable, without spaces, and at most 900 bytes
// long. What the ranks exchange includes the key of the job, unless [WithKey] or RMA_KEY_FILE
// gives it to each: it must not be open to others.
type Exchange func(ctx context.Context, mine string) (all []string, err error)

// New joins a job whose processes have found each other, by an exchange between them.
func New(ctx context.Context, rank, size int, exchange Exchange, options ...Option) (*World, error) {
	switch {
	case ctx == nil:
		return nil, nilArgument("New", "context")
	case exchange == nil:
		return nil, nilArgument("New", "exchange")
	case size < 1 || size > MaxRanks:
		return nil, fmt.Errorf("world: New: %w: %d ranks, allowed are 1 to %d", ErrArgument, size, MaxRanks)
	case rank < 0 || rank >= size:
		return nil, fmt.Errorf("world: New: %w: rank %d, %s", ErrArgument, rank, errtext.Allowed(size-1))
	}
	s, flaw := jobSettings(options)
	if flaw != nil {
		return nil, errtext.Errorf("world: New: %w", decline(ctx, exchange, rank, s, flaw))
	}
	s.yield = yieldToProcesses
	w, err := join(ctx, rank, size, exchange, s)
	if err != nil {
		return nil, errtext.Errorf("world: New: %w", err)
	}
	return w, nil
}

// join makes the World of a rank. The ranks exchange twice: first who they are,
// which decides the devices that each opens, and then where these are.
func join(ctx context.Context, rank, size int, exchange Exchange, s Settings) (w *World, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.patience, fmt.Errorf("not all of %s started within %v", errtext.Count(size, "rank"), s.patience))
	defer cancel()
	exchange = s.attended(exchange, rank, size)
	var devices [cardKinds]verbs.Device
	var pipe *os.File // for the table of RMA_STATS
	defer func() {
		if err == nil {
			return
		}
		if pipe != nil {
			_ = pipe.Close()
		}
		for _, device := range devices {
			if device != nil {
				err = errors.Join(err, device.Close())
			}
		}
	}()
	mine, shared, err := introduce(rank, size, s)
	if err != nil {
		return nil, decline(ctx, exchange, rank, s, err)
	}
	if shared != nil {
		devices[sharedCard] = shared
	}
	ranks, err := introductions(ctx, exchange, size, mine)
	if err != nil {
		return nil, err
	}
	ranks[rank].unshared = mine.unshared
	limitSharing(ranks, s.device, s.addresses())
	wanted, err := cardsOf(ranks, rank, s.device)
	if err != nil {
		return nil, err
	}
	ranks[rank].logUnshared(s.logger, ranks)
	network := opening{rank: rank, device: networkOf(ranks, s.device), near: near(ranks), key: ranks[0].key,
		counts: countRanks(ranks, rank, func(int) bool { return false })}
	if network.device == ibvDevice {
		if err := agreeOnCards(ranks, rank); err != nil {
			return nil, err
		}
	}
	if !wanted[sharedCard] && shared != nil {
		devices[sharedCard] = nil
		if err := shared.Close(); err != nil {
			return nil, err
		}
	}
	key, err := s.jobKey(ranks[0].key)
	if err != nil {
		return nil, err
	}
	if devices[sharedCard] != nil {
		shared.SetKey(key)
	}
	if err = s.checkFiles(wanted[networkCard]); err == nil {
		pipe, err = s.openPipe()
	}
	if err != nil {
		return nil, decline(ctx, exchange, rank, s, err)
	}
	if wanted[networkCard] {
		if devices[networkCard], err = openNetwork(ctx, network, s); err != nil {
			return nil, decline(ctx, exchange, rank, s, err)
		}
	}
	b, err := newBase(devices, size)
	if err != nil {
		return nil, err
	}
	texts, err := gatherTexts(ctx, exchange, size, b.contact.text())
	if err != nil {
		return nil, err
	}
	w = newWorld(rank, size, b, newRoster(size), s)
	if s.yield != nil {
		w.changeLimits(func(l *progress.Limits) { l.Yield = s.yield })
	}
	if s.session != nil {
		s.session.adopt(w)
	}
	w.statsPipe = pipe
	if err := w.beginTrace(jobOf(texts), 0); err != nil {
		return nil, err
	}
	w.apart, w.networkName = true, network.device
	w.roster.reason = w.reason
	w.reopen = func(ctx context.Context, r rankCounts) (again [cardKinds]verbs.Device, err error) {
		if wanted[sharedCard] {
			shared, err := s.openShared(size, key)
			if err != nil {
				return again, err
			}
			again[sharedCard] = shared
		}
		network := network
		network.counts = r
		if err := checkDescriptors(network.toShare()); err != nil {
			return again, err
		}
		if wanted[networkCard] {
			again[networkCard], err = openNetwork(ctx, network, s)
		}
		return again, err
	}
	j, err := newJob(ranks, texts)
	if err != nil {
		return nil, err
	}
	if s.dialed != "" {
		server := &j.contacts[0].addresses
		server[networkCard] = tcp.Through(s.dialed, server[networkCard])
	}
	if err := w.begin(j); err != nil {
		return nil, err
	}
	if err := w.watch(); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

// begin completes the World by what is known of the job.
func (w *World) begin(j *job) error {
	w.job, w.hosts, w.toll, w.linked = j, j.hosts, j.toll(), j.linked()
	if err := w.reachable(); err != nil {
		return err
	}
	w.setOversubscribed(j.oversubscribed(w.rank), j.rooted)
	stopMarking, stopSevering, stopListening := w.roster.beforehand(w.markFailed), w.roster.beforehand(w.lines.sever), w.roster.relayTo(w.noteFailure)
	w.end = func() { stopMarking(); stopSevering(); stopListening() }
	if w.cards[networkCard] != nil && w.cards[sharedCard] != nil {
		teller := new(bulletin)
		teller.f = func(rank int) { w.tellHere(teller, rank) }
		stopTelling := w.roster.relayTo(teller.add)
		w.end = func() {
			stopMarking()
			stopSevering()
			stopListening()
			stopTelling()
			teller.end()
		}
		w.telling = &teller.running
	}
	if w.cards[networkCard] != nil {
		w.engine.StartBackground()
	}
	// Not by the queue, whose goroutine most jobs never need.
	w.settings.logger.Debug("joined", "rank", w.rank, "size", w.size, "device", w.home.attributes.Name)
	return nil
}

// watch has the end of ranks that are mapped noticed.
func (w *World) watch() error {
	shared := w.cards[sharedCard]
	if shared == nil {
		return nil
	}
	watcher, ok := shared.device.(verbs.Watcher)
	for rank := range w.size {
		if !ok || rank == w.rank || !w.maps(rank) {
			continue
		}
		if _, err := watcher.Watch(w.addressOf(rank), func(cause error) { w.failed(rank, cause) }); err != nil {
			return fmt.Errorf("watching rank %d: %w", rank, err)
		}
	}
	return nil
}

// longestNotice is the maximum of firstNotice.
const longestNotice = 3 * time.Second

// firstNotice returns after what time a rank that waits for others to start logs it for the first time; 0 if it never does.
func (s *Settings) firstNotice() time.Duration { return min(longestNotice, s.stall) }

// attended returns an exchange that logs that it waits, at growing intervals, unless WithStall is 0. It gives this rank's own text in
// its place.
func (s *Settings) attended(exchange Exchange, rank, size int) Exchange {
	return func(ctx context.Context, mine string) ([]string, error) {
		returned := make(chan struct{})
		var telling sync.WaitGroup
		if first := s.firstNotice(); first > 0 {
			telling.Go(func() {
				began := time.Now()
				for wait := first; ; wait *= 2 {
					select {
					case <-returned:
						return
					case <-time.After(wait):
						s.logger.Warn("waits for the other ranks, with which it exchanges where each is", "rank", rank, "size", size, "for", time.Since(began).Round(min(time.Second, first)))
					}
				}
			})
		}
		defer telling.Wait()
		defer close(returned)
		all, err := exchange(ctx, mine)
		if err == nil && len(all) == size && all[rank] != mine {
			err = fmt.Errorf("%w: the text that came back is not this rank's own: another process says that it is rank %d, too, or texts are changed on their way", ErrMismatch, rank)
		}
		return all, err
	}
}

// gatherTexts is an exchange whose result is checked.
func gatherTexts(ctx context.Context, exchange Exchange, size int, mine string) ([]string, error) {
	texts, err := exchange(ctx, mine)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
			err = errors.Join(err, cause)
		}
		return nil, fmt.Errorf("exchange with the other ranks: %w", err)
	}
	if len(texts) != size {
		return nil, fmt.Errorf("exchange with the other ranks: %w: %s for %s", ErrArgument, errtext.Count(len(texts), "text"), errtext.Count(size, "rank"))
	}
	return slices.Clone(texts), declined(texts)
}

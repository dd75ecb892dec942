package world

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// Obituaries are where those that map a rank's block tell it of a failure. Ranks tell
// each other over links; but those on one host have none with each other, and one of
// them may know that a rank elsewhere has failed, and wait for a lock of that in a
// window of another which has heard nothing.
//
// They are a count, and a bit for each rank of the job. Whoever tells sets the bit and
// then raises the count, which the owner looks at whenever it makes progress: so one that
// finds the count raised finds the bit. All raise it, also where the bit is set already:
// who set that may have ended before it raised the count.

// A rank whose body has failed says why itself. Behind the bits is place for the words of one rank, the first that comes: what
// others fail of is that. A rank finds them there whatever tells it of the failure.

// obituaryWords is how many words the obituaries of a job have.
func obituaryWords(size int) int { return 1 + (size+63)/64 + reasonWords }

const (
	// reasonWords are 1 + the rank that has failed, and why. While the rank writes the first has reasonUnfinished, too.
	reasonWords      = 1 + 48
	reasonUnfinished = 1 << 63
	// reasonTime is how long a rank that has failed waits for ranks which it has never met, to tell them.
	reasonTime = 100 * time.Millisecond
)

// errObituary is why a rank has failed, to one that was told so in its block.
var errObituary = errors.New("another rank of this host has found that it has failed")

// tellHere tells the ranks that this rank maps that one has failed, if they do not map
// that themselves, until the end of the bulletin: their memory is mapped until then.
func (w *World) tellHere(b *bulletin, failed int) {
	if w.Mapped(failed) {
		return
	}
	ranks := make([]int, 0, w.size)
	var strangers []int
	for rank := range w.size {
		switch {
		case rank == w.rank || !w.Mapped(rank) || w.Failure(rank) != nil:
		case w.stranger(rank):
			strangers = append(strangers, rank)
		default:
			ranks = append(ranks, rank)
		}
	}
	// One of those that is stopped does not answer.
	for _, rank := range append(ranks, strangers...) {
		block, err := w.blockOf(rank)
		if err != nil {
			continue
		}
		if !b.before(func() {
			told := obituariesOver(block, w.size)
			told[1+failed/64].Or(1 << (failed % 64))
			told[0].Add(1)
			w.Ring(rank)
		}) {
			return
		}
	}
}

// readObituaries makes what this rank was told known to it.
func (w *World) readObituaries() {
	count := w.obituaries[0].Load()
	if count == w.obituariesRead {
		return
	}
	w.obituariesRead = count
	for rank := range w.size {
		if w.obituaries[1+rank/64].Load()>>(rank%64)&1 != 0 && rank != w.rank {
			w.roster.fail(rank, errObituary)
		}
	}
}

// tellWhy tells those that this rank maps why it has failed, unless another has failed before. They would find no more than that it
// is gone. It waits for them no longer than limit. One that is stopped, and that this rank has never met, does not answer: closing the
// device ends the wait for it.
func (w *World) tellWhy(limit time.Duration) {
	first, err := w.FirstFailure()
	var failed *PeerError
	if first != w.rank || w.closed.Load() || !w.apart || w.cards[sharedCard] == nil || !errors.As(err, &failed) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if w.telling == nil {
		w.telling = new(sync.WaitGroup)
	}
	told, asked, over := make(chan struct{}, w.size), 0, new(bulletin)
	for rank := range w.size {
		if rank == w.rank || !w.Mapped(rank) || w.Failure(rank) != nil {
			continue
		}
		asked++
		w.telling.Go(func() {
			if block, err := w.blockOf(rank); err == nil {
				over.before(func() { w.writeReason(rank, block, failed.Cause) })
			}
			told <- struct{}{}
		})
	}
	for range asked {
		select {
		case <-told:
		case <-ctx.Done():
		}
	}
	over.end()
}

// writeReason writes into the block of a rank why this one has failed, unless another has.
func (w *World) writeReason(rank int, block []byte, cause error) {
	told := obituariesOver(block, w.size)
	reason := told[len(told)-reasonWords:]
	if !reason[0].CompareAndSwap(0, uint64(w.rank+1)|reasonUnfinished) {
		return
	}
	storeText(reason[1:], reasonOf(cause))
	reason[0].Store(uint64(w.rank + 1))
	told[1+w.rank/64].Or(1 << (w.rank % 64))
	told[0].Add(1)
	w.Ring(rank)
}

// reasonOf is the first line of why a rank has failed, as much of it as there is place for.
func reasonOf(cause error) string {
	text, _, _ := strings.Cut(errtext.After("world: ", cause), "\n")
	text = strings.TrimPrefix(text, "world: ")
	for len(text) > 8*(reasonWords-1) {
		_, last := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-last]
	}
	return text
}

// A reasonError is why a rank has failed, as that has told, in place of how this one has found out.
type reasonError struct {
	text  string
	found error
}

func (e *reasonError) Error() string { return e.text }
func (e *reasonError) Unwrap() error { return e.found }

// reason is why a rank has failed, if it has told this one, and else how this one has found out.
func (w *World) reason(rank int, found error) error {
	if !errors.Is(found, verbs.ErrPeerGone) && !errors.Is(found, errObituary) {
		return found
	}
	reason := w.obituaries[len(w.obituaries)-reasonWords:]
	if reason[0].Load() != uint64(rank+1) {
		return found
	}
	return &reasonError{strings.ToValidUTF8(loadText(reason[1:]), "?"), found}
}

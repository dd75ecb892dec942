package job

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A reason is why the body of a rank has failed, in one line. Before it departs the rank sends its reason to every rank that it is
// connected with:
//
//   - A rank that it maps has room for one reason in its block, behind the failure flags. The first rank to fail takes it: why
//     others fail follows from that.
//   - A rank that it has a link with gets a failure notice, as for any other failure. A rank without either hears nothing of the
//     reason from this rank; others may pass it on.
//
// # Order
//
// Of a block the writer, in writeReason, is the rank that fails, and the reader, in reason, is the rank whose block it is:
//
//   - The writer takes the room by a compare-and-swap of the first word, from 0 to its rank and reasonUnfinished. So there is one writer.
//   - It stores the text, then its rank in the first word. The reader loads the first word, and the text only if that is the rank in
//     question. So it has the whole text, which no other rank writes any more.
//   - The writer then sets its failure flag, raises the count, and departs. The reader looks for a reason when it records the failure. It
//     has learned of that by the flag, by the end of the writer's device, or later. So the text is there.
//   - The writer sets the flag in all blocks before it raises any count. A rank whose count is raised may end at once. Another rank that
//     finds it gone has the flag in its own block then, and records that first: see recordCauses. The writer does not wait longer than
//     its limit to map the block of a rank. Such a rank has no flag. The flag is also
//     set where another rank has written its reason.
//
// Of a link the writer sends the notice after its other messages, and waits until it is received before it ends the connection. The
// reader serves what has come before it records the end of a connection: see endLinks.
//
// None of this holds for a writer that is damaged: the reader passes every text through cleanReason.

const (
	// reasonTime is how long a rank that has failed waits at most, for all ranks together, until they have its reason.
	reasonTime = 100 * time.Millisecond
	// maxReason is the length of the longest reason, in bytes: a verdict may have one.
	maxReason = maxVerdict
	// reasonWords are 1 + the rank that has failed, and the text. While the rank writes, the first has reasonUnfinished, too.
	reasonWords      = 1 + (maxReason+7)/8
	reasonUnfinished = 1 << 63
	// noReason is the reason of a rank that has sent an empty one.
	noReason = "no reason was given"
)

// cleanReason returns the first line of a text, of which not all may be text: valid UTF-8 of 1 to maxReason bytes that is printable.
func cleanReason(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, strings.ToValidUTF8(line, "?"))
	for end := maxReason; len(line) > maxReason; end-- {
		if utf8.RuneStart(line[end]) {
			line = line[:end]
		}
	}
	return cmp.Or(strings.TrimSpace(line), noReason)
}

// reasonOf returns the reason that is sent of a failure: without what this rank adds for its own calls.
func reasonOf(cause error) string {
	for {
		switch e := cause.(type) {
		case *laterError:
			cause = e.cause
		case *memberError:
			cause = e.cause
		case *toldError:
			return e.text
		case *reasonError:
			return e.text
		default:
			return cleanReason(strings.TrimPrefix(errtext.After("world: ", cause), "world: "))
		}
	}
}

// A reasonError is why a rank has failed, as that rank has written, in place of how this one has found out.
type reasonError struct {
	text  string
	found error
}

func (e *reasonError) Error() string { return e.text }
func (e *reasonError) Unwrap() error { return e.found }

// reason returns the reason of a rank that has failed, if the rank has written one here, and else how this rank has found out.
func (w *World) reason(rank int, found error) error {
	if text := reasonIn(w.obituaries, rank); text != "" && rank != w.rank {
		return &reasonError{cleanReason(text), found}
	}
	return found
}

// reasonIn returns the reason that a rank has written in a block, as it is there, or nothing if there is none of that rank.
func reasonIn(flags []atomic.Uint64, rank int) string {
	reason := flags[len(flags)-reasonWords:]
	if reason[0].Load() != uint64(rank+1) {
		return ""
	}
	return loadText(reason[1:])
}

// A reasonSending is what a rank that has failed still sends.
type reasonSending struct {
	links []unsent
	// running are the goroutines that map blocks of peers which are not mapped yet, left how many of them have not.
	running sync.WaitGroup
	left    atomic.Int32

	mu sync.Mutex
	// unraised are the blocks that have the flag, and whose count is not raised yet.
	unraised []unraised
	// ended: no block is written any more, because the device is about to be closed.
	ended bool
}

// An unraised is the count of the failure flags of a rank of a World.
type unraised struct {
	world *World
	rank  int
	count *atomic.Uint64
}

// An unsent is a link, and what is to be received over it.
type unsent struct {
	link *Link
	mark Mark
}

// sendReason records that this rank has failed, here and in the Worlds that Shrink has made, and sends why. It returns when all that it is
// connected with have the reason, or after limit. A goroutine that waits for a stopped peer ends with the device.
func (w *World) sendReason(why error, limit time.Duration) *reasonSending {
	s := new(reasonSending)
	worlds := w.allShrunk()
	if !w.closed.Load() {
		worlds = append(worlds, w)
	}
	w.failLast(why)
	for _, of := range worlds {
		of.failLast(why)
	}
	if len(worlds) == 0 || w.virtual() && errors.Is(why, errUnwound) {
		// A rank that its simulator has killed sends nothing.
		return s
	}
	for _, of := range worlds {
		s.begin(of)
	}
	// The clock of one, and its sleeps, which are short, serve all.
	first, others := worlds[0], worlds[1:]
	ctx := first.within(context.Background(), limit)
	wait := first.NewWaiter()
	defer wait.Finish()
	for !s.done() && ctx.Err() == nil {
		wait.Brief()
		// A link that lacks descriptors is no reason to leave the others.
		if err := wait.Pause(ctx); err != nil && !errors.Is(err, verbs.ErrShortage) {
			break
		}
		for _, of := range others {
			of.engine.Poll()
		}
	}
	// In this order every block that has the flag is woken.
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.wake()
	return s
}

// failLast records that this rank has failed. Ranks that hear of it end their connections with this one, which finds them gone: that is
// no failure of theirs, and other ranks must not hear of it as one.
func (w *World) failLast(why error) {
	if !w.sharesRoster() {
		w.roster.mu.Lock()
		w.roster.own = w.rank + 1
		w.roster.mu.Unlock()
	}
	w.roster.fail(w.rank, why)
}

// sharesRoster reports whether the ranks of this World have one roster, and so know each other's failures.
func (w *World) sharesRoster() bool { return w.roster.reason == nil && w.cards[networkCard] == nil }

// allShrunk returns the Worlds that Shrink has made of this one, of its teams, and of those Worlds, and that are not closed.
func (w *World) allShrunk() (worlds []*World) {
	for _, small := range w.madeByShrink() {
		if !small.closed.Load() {
			worlds = append(worlds, small)
		}
		worlds = append(worlds, small.allShrunk()...)
	}
	return worlds
}

// begin sends the reason to the ranks of a World.
func (s *reasonSending) begin(w *World) {
	before := len(s.links)
	w.engine.Exclude(func() {
		w.passOn()
		for _, c := range w.cards {
			if c == nil {
				continue
			}
			for _, l := range inOrder(c.links) {
				if !l.mute && l.broken.Load() == nil {
					s.links = append(s.links, unsent{l, l.Mark()})
				}
			}
		}
	})
	for _, u := range s.links[before:] {
		// A link that cannot send has a fault.
		_ = u.link.settle(u.mark)
	}
	first, err := w.FirstFailure()
	var failed *PeerError
	if first != w.rank || !errors.As(err, &failed) || w.sharesRoster() {
		return
	}
	text := reasonOf(failed.Cause)
	add := func(rank int) {
		if block, err := w.blockOf(rank); err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.ended {
				w.writeReason(block, text)
				s.unraised = append(s.unraised, unraised{w, rank, &obituariesOver(block, w.size)[0]})
			}
		}
	}
	for rank := range w.size {
		switch {
		case rank == w.rank || !w.Mapped(rank) || w.Failure(rank) != nil:
		case w.stranger(rank):
			// Mapping a peer needs its reply; a stopped peer never replies.
			s.left.Add(1)
			s.running.Go(func() {
				add(rank)
				s.left.Add(-1)
				w.engine.Wake()
			})
		default:
			add(rank)
		}
	}
}

// wake raises the count of all blocks that have the flag, and wakes their ranks.
func (s *reasonSending) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.unraised {
		u.count.Add(1)
		u.world.Ring(u.rank)
	}
	s.unraised = nil
}

// done reports whether all ranks have the reason, or cannot get it.
func (s *reasonSending) done() bool {
	mapped := s.left.Load() == 0
	if mapped {
		s.wake()
	}
	for len(s.links) > 0 {
		l := s.links[0].link
		if l.stuck.Load() {
			l.Post()
		}
		if l.done.Load() < s.links[0].mark.sequence && l.fault() == nil {
			return false
		}
		s.links = s.links[1:]
	}
	return mapped
}

// writeReason writes into the block of a rank why this one has failed, unless another rank has, and sets its flag.
func (w *World) writeReason(block []byte, text string) {
	flags := obituariesOver(block, w.size)
	reason := flags[len(flags)-reasonWords:]
	if reason[0].CompareAndSwap(0, uint64(w.rank+1)|reasonUnfinished) {
		storeText(reason[1:], text)
		reason[0].Store(uint64(w.rank + 1))
	}
	flagOf(flags, w.rank).set()
}

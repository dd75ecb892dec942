package job

import (
	"cmp"
	"errors"
	"sync/atomic"

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
//
// A rank that was stopped, and that others have taken for dead, finds that they have ended their connections to it when it is continued.
// It would tell of them as failed. So the owner sets the bit of each failure that it knows of, before it records the failure, and a rank
// whose own bit is set there tells the owner nothing. That is no more than a look: a rank that is continued at the very moment in which
// others give it up may still tell first.

// After the bits come the first failure that the owner knows of, and the reason of one rank: see reason.go.
//
// # The first failure
//
// A rank that ends because another has failed may be found gone by a rank that has not heard of that failure yet. So each rank stores
// the first failure that it knows of in its own block, as 1 + the rank. A rank that finds it gone records that failure first, and so
// names the rank at the beginning of the chain.
//
//   - The owner stores the word in roster.fail, by markFailed, before it records the failure. So no call of the owner has returned an
//     error for the failure before, and the owner has not ended because of it. A rank that ends because another has left stores nothing,
//     and is named itself. A reader loads the word, in recordCauses, after it has
//     found the owner gone: by the end of the owner's process or connection, or by its closed device. So it finds the failure for which
//     the owner has ended.
//   - The reader records that failure before the end of the owner, and stores it as its own first one. So along a chain of ranks that
//     end each finds the first failure of the chain.
//   - The owner stores the first failure only, its own if that is the first. What it finds after its own failure are ranks that have
//     ended because of that. Of failures before it the owner tells all ranks that it can. So the word fails no rank that the owner
//     would not have failed by a message, whether it is right or not. A rank that closes its World in order is gone for the owner after
//     the last meeting, and for the reader, too.
//   - The reader maps the words when it meets the owner: those of a rank that is gone cannot be mapped any more. If the reader has not
//     met the owner it names the owner, unless it has been told in its own block of an earlier failure: see reason.go. While the reader closes its
//     device it finds what was there, or zeros.
//   - Any rank that maps the block can have written the word. It counts only if it names a rank of the job other than the owner and
//     the reader.

// obituaryWords is how many words the obituaries of a job have.
func obituaryWords(size int) int { return 1 + (size+63)/64 + 1 + reasonWords }

// firstOf is the word of the first failure.
func firstOf(flags []atomic.Uint64) *atomic.Uint64 { return &flags[len(flags)-reasonWords-1] }

// markFailed stores a failure in this rank's block: its flag, for those that would tell this rank of failures, and the rank itself as the
// first failure, unless there was another.
func (w *World) markFailed(failed int) {
	firstOf(w.obituaries).CompareAndSwap(0, uint64(failed)+1)
	flagOf(w.obituaries, failed).set()
}

// A flag is the bit of a rank among obituaries.
type flag struct {
	word *atomic.Uint64
	bit  uint64
}

func flagOf(flags []atomic.Uint64, rank int) flag { return flag{&flags[1+rank/64], 1 << (rank % 64)} }

func (f flag) set()        { f.word.Or(f.bit) }
func (f flag) isSet() bool { return f.word.Load()&f.bit != 0 }

// keepFlags maps the failure flags of a rank that this one meets. If the block is not as it must be, whoever needs it finds that.
func (w *World) keepFlags(rank int, n verbs.Neighbor) {
	if block, err := w.mapBlock(rank, n); err == nil {
		flags := obituariesOver(block, w.size)
		w.flags[rank].Store(&flags)
	}
}

// recordCauses records the failures for which a rank that is gone may have ended: the first that the rank knew of, and those that this
// rank has been told of in its own block.
func (w *World) recordCauses(gone int) {
	if flags := w.flags[gone].Load(); flags != nil {
		w.recordFirst(*flags, gone)
	}
	w.recordTold()
}

// recordFirst records the first failure that a rank which is gone knew of.
func (w *World) recordFirst(flags []atomic.Uint64, gone int) {
	word := firstOf(flags).Load()
	if word == 0 || word > uint64(w.size) {
		return
	}
	if first := int(word) - 1; first != gone && first != w.rank {
		text := cmp.Or(reasonIn(flags, first), unexplained)
		w.roster.fail(first, &toldError{first, gone, cleanReason(text)})
	}
}

// unexplained is in the place of the reason of a rank that the first failure of another names.
const unexplained = "no reason is known"

// errObituary is why a rank has failed, to one that was told so in its block.
var errObituary = errors.New("another rank of this host has found that it has failed")

// tellHere tells those whom it concerns that a rank has failed, until the end of the bulletin: their memory is mapped until then.
func (w *World) tellHere(b *bulletin, failed int) {
	for _, rank := range w.tellable(failed) {
		block, err := w.blockOf(rank)
		if err != nil {
			continue
		}
		if !b.before(func() {
			told := obituariesOver(block, w.size)
			if flagOf(told, w.rank).isSet() {
				return
			}
			flagOf(told, failed).set()
			told[0].Add(1)
			w.Ring(rank)
		}) {
			return
		}
	}
}

// tellable is the ranks that this rank maps, but not those that have failed, to be told of one that has: none if they map
// that one themselves. Strangers come last, since one of them that is stopped does not answer.
func (w *World) tellable(failed int) []int {
	if w.Mapped(failed) {
		return nil
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
	return append(ranks, strangers...)
}

// readObituaries makes what this rank was told known to it.
func (w *World) readObituaries() {
	count := w.obituaries[0].Load()
	if count == w.obituariesRead {
		return
	}
	w.obituariesRead = count
	w.recordTold()
}

// recordTold records the failures that this rank has been told of in its block.
func (w *World) recordTold() {
	for rank := range w.size {
		if flagOf(w.obituaries, rank).isSet() && rank != w.rank {
			w.roster.fail(rank, errObituary)
		}
	}
}

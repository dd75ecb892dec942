package world

import "errors"

// Obituaries are where those that map a rank's block tell it of a failure. Ranks tell
// each other over links; but those on one host have none with each other, and one of
// them may know that a rank elsewhere has failed, and wait for a lock of that in a
// window of another which has heard nothing.
//
// They are a count, and a bit for each rank of the job. Whoever tells sets the bit and
// then raises the count, which the owner looks at whenever it makes progress: so one that
// finds the count raised finds the bit. All raise it, also where the bit is set already:
// who set that may have ended before it raised the count.

// Behind the bits is the reason of one rank: see reason.go.

// obituaryWords is how many words the obituaries of a job have.
func obituaryWords(size int) int { return 1 + (size+63)/64 + reasonWords }

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

package job

import (
	"fmt"

	"github.com/onesided/rma/internal/errtext"
)

// mailbox is what goes between this rank and one that it has no pipes with, as messages of their link.
type mailbox struct {
	// sent counts the bytes of letters to the rank, taken those that it has told that it took.
	sent, taken uint64
	// came counts those of letters of the rank, took those that were taken here, of which it was
	// told told.
	came, took, told uint64
	// letters have come before anybody wanted them; want is who does.
	letters [][]byte
	want    *parcel
	crossing
}

// mailWindow bounds the bytes of letters that a rank has sent another, and that one has not taken.
func (w *World) mailWindow() uint64 { return 4 * uint64(w.linkLetter) }

// leastPostage is about what the receiver needs to keep a letter that it has not taken, beside the bytes.
const leastPostage = 40

// postage is what a letter of so many bytes counts in the window.
func postage(bytes int) uint64 { return uint64(max(bytes, leastPostage)) }

func (o *office) box(rank int) *mailbox {
	box := o.boxes[rank]
	if box == nil {
		box = new(mailbox)
		o.boxes[rank] = box
	}
	return box
}

// mail sends what may be sent of a parcel.
func (o *office) mail(p *parcel) (moved bool, err error) {
	l, err := o.world.Link(p.rank)
	if err != nil {
		return false, &linkageError{p.rank, err}
	}
	for !p.finished() {
		n := p.next(l.MaxPayload())
		if !o.grant(p.rank, n) {
			break
		}
		head := o.heading[:0]
		if !p.begun {
			head = o.heading[:]
			p.header.encode(head)
		}
		data := p.data[p.done:][:n-len(head)]
		told, failed := l.tryTell(&Message{Kind: kindMail, More: data}, head)
		if !told || failed != nil {
			o.ungrant(p.rank, n)
			if failed != nil {
				err = &linkageError{p.rank, failed}
			}
			break
		}
		p.begun, p.done, moved = true, p.done+len(data), true
	}
	if moved {
		l.Post()
	}
	return moved, err
}

// grant counts a letter to a rank that is about to be sent, if so much may be on its way; ungrant takes
// that back.
func (o *office) grant(rank, bytes int) bool {
	o.world.engine.Lock()
	defer o.world.engine.Unlock()
	box := o.box(rank)
	if box.sent+postage(bytes)-box.taken > o.world.mailWindow() {
		return false
	}
	box.sent += postage(bytes)
	return true
}

func (o *office) ungrant(rank, bytes int) {
	o.world.engine.Lock()
	defer o.world.engine.Unlock()
	o.box(rank).sent -= postage(bytes)
}

// collect takes what has come of a parcel, and has what comes go there. It tells whether all has.
func (o *office) collect(p *parcel) (moved, all bool, err error) {
	o.world.engine.Lock()
	defer o.world.engine.Unlock()
	box := o.box(p.rank)
	box.want = p
	for len(box.letters) > 0 && !p.finished() {
		letter := box.letters[0]
		if err := p.unpack(o.world, letter); err != nil {
			return moved, false, err
		}
		box.letters = box.letters[:copy(box.letters, box.letters[1:])]
		o.spareLetter(letter)
		o.takes(p.rank, box, len(letter))
		moved = true
	}
	return moved, p.finished(), nil
}

// spareLetter keeps the memory of a letter that was taken for others, which may be longer: as much as one rank may have
// sent before it is taken, however many there were.
func (o *office) spareLetter(letter []byte) {
	if bytes := postage(cap(letter)); o.spareBytes+bytes <= o.world.mailWindow() {
		o.spare, o.spareBytes = append(o.spare, letter), o.spareBytes+bytes
	}
}

// unwant has nothing go to a parcel any more.
func (o *office) unwant(p *parcel) {
	if o.piped(p.rank) {
		return
	}
	o.world.engine.Lock()
	defer o.world.engine.Unlock()
	o.box(p.rank).want = nil
}

// mailed takes a letter of a rank: it goes where it is wanted, or waits. It is called in progress.
func (o *office) mailed(from *Link, letter []byte) error {
	if o.piped(from.rank) {
		return fmt.Errorf("%w: a letter of a collective, which goes by a pipe", ErrMessage)
	}
	box := o.box(from.rank)
	box.came += postage(len(letter))
	if open := box.came - box.told; open > o.world.mailWindow() {
		return fmt.Errorf("%w: %s for collectives not taken, allowed are %d", ErrMessage, errtext.Count(open, "byte"), o.world.mailWindow())
	}
	if p := box.want; p != nil && len(box.letters) == 0 && !p.finished() && p.unpack(o.world, letter) == nil {
		o.takes(from.rank, box, len(letter))
		return nil
	}
	var kept []byte
	if last := len(o.spare) - 1; last >= 0 {
		kept, o.spare = o.spare[last][:0], o.spare[:last]
		o.spareBytes -= postage(cap(kept))
	}
	o.world.Copied(len(letter))
	box.letters = append(box.letters, append(kept, letter...))
	return nil
}

// takes counts a letter that was taken, and tells the rank when it is many.
func (o *office) takes(rank int, box *mailbox, bytes int) {
	box.took += postage(bytes)
	if 2*(box.took-box.told) < o.world.mailWindow() {
		return
	}
	if l := o.world.links[rank].Load(); l != nil {
		box.told = box.took
		l.Reply(&Message{Kind: kindMailTaken, X: box.took}, nil)
	}
}

// mailTaken notes what a rank tells that it has taken. It is called in progress.
func (o *office) mailTaken(from *Link, taken uint64) error {
	box := o.box(from.rank)
	if taken-box.taken > box.sent-box.taken {
		return fmt.Errorf("%w: %s for collectives taken, of %d that were sent", ErrMessage, errtext.Count(taken, "byte"), box.sent)
	}
	box.taken = taken
	return nil
}

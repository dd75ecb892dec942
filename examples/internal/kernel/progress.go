package kernel

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/onesided/rma/internal/tty"
)

const (
	// firstShown is the time after which progress is first shown, and shownEvery the interval after that.
	firstShown = time.Second
	shownEvery = 200 * time.Millisecond
	eraseLine  = "\r\x1b[K"
)

// A bar is a line on a terminal that shows the progress of the work.
type bar struct {
	to  io.Writer
	now func() time.Time
	// begun is when the work began, last when something was last shown.
	begun, last time.Time
	shown       bool
}

// newBar returns nil unless output to "to" appears on a terminal at once.
func newBar(to io.Writer) *bar {
	file, ok := to.(*os.File)
	if !ok || !tty.Shows(file) {
		return nil
	}
	return &bar{to: to, now: time.Now}
}

// Progress reports that done of all pieces of the work are done. Rank 0 shows that, with an estimate of the remaining
// time, if its output is a terminal and the work takes long. Progress may be called often, but not for each of many
// short operations.
func (r *Rank) Progress(done, all int) {
	if r.bar != nil {
		r.bar.show(done, all)
	}
}

func (b *bar) show(done, all int) {
	now := b.now()
	if b.begun.IsZero() {
		b.begun = now
	}
	took := now.Sub(b.begun)
	if took < firstShown || now.Sub(b.last) < shownEvery || done <= 0 {
		return
	}
	b.last, b.shown = now, true
	left := time.Duration(float64(took) / float64(done) * float64(all-done)).Round(time.Second)
	fmt.Fprintf(b.to, "%s%3d %%, %v left", eraseLine, 100*done/max(all, 1), left)
}

// erase removes the line and begins anew.
func (b *bar) erase() {
	if b.shown {
		fmt.Fprint(b.to, eraseLine)
	}
	b.shown, b.begun = false, time.Time{}
}

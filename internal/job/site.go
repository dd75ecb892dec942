package job

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// In debug mode a rank shows in its ledger where its program has made its last collective call, before the record of that. A rank that
// finds that another has made another call looks there, or asks, and says both places to all.

// siteBytes is the longest text of a place. A longer one loses its beginning.
const siteBytes = 8 * len(ledger{}.site)

// siteOfProgram is where the program calls the library, as in main.go:31.
func siteOfProgram() string {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers[:])])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		if _, own := exportedName(frame.Function); !own && !strings.HasPrefix(frame.Function, "sync.") || strings.HasSuffix(frame.File, "_test.go") {
			site := fmt.Sprintf("%s:%d", frame.File, frame.Line)
			return site[max(len(site)-siteBytes, 0):]
		}
	}
	return ""
}

// showSite is called by the owner before it stores the record of the call.
func (l *ledger) showSite(number uint32, site string) {
	l.sited.Store(0)
	storeText(l.site[:], site)
	l.sited.Store(1<<32 | uint64(number))
}

// shownSite is where the owner has made the call of a number, empty if it does not show that.
func (l *ledger) shownSite(number uint32) string {
	if l.sited.Load() != 1<<32|uint64(number) {
		return ""
	}
	site := loadText(l.site[:])
	if l.sited.Load() != 1<<32|uint64(number) {
		return ""
	}
	return site
}

// siteOf is where a rank has made the call of a number, empty if that is not known.
func (w *World) siteOf(rank int, number uint32) string {
	if !w.Mapped(rank) {
		answer := make([]byte, siteBytes)
		ctx := w.asking(longestCallAsk)
		q, ok := w.inquire(ctx, rank, &Message{Kind: kindSite, X: uint64(number)}, answer)
		if !ok || !q.answered(ctx) {
			return ""
		}
		site, _, _ := bytes.Cut(answer, []byte{0})
		return string(site)
	}
	l, err := w.ledgerOf(rank)
	if err != nil {
		return ""
	}
	return l.shownSite(number)
}

// answerSite answers siteOf.
func (w *World) answerSite(l *Link, number uint32) {
	var answer [siteBytes]byte
	copy(answer[:], w.ledger.shownSite(number))
	l.Answer(answer[:])
}

// sites says in debug mode where this rank and another have made calls that differ, as far as that is known, the lower rank first.
func (w *World) sites(rank int, theirs, mine *signature) (text string) {
	if !w.settings.debug {
		return ""
	}
	numbers := map[int]uint32{rank: theirs.number, w.rank: mine.number}
	for _, rank := range slices.Sorted(slices.Values([]int{rank, w.rank})) {
		if site := w.siteOf(rank, numbers[rank]); site != "" {
			text += fmt.Sprintf("; rank %d at %s", rank, site)
		}
	}
	return text
}

package root

import (
	"fmt"
	"net"
	"strings"
	"unicode"

	"github.com/onesided/rma/internal/proof"
)

const (
	// mostRejections is the number of rejections that are kept of unproven callers, and again of ranks.
	mostRejections = 8
	// mostReasonBytes is the length of a reason that is kept, in bytes.
	mostReasonBytes = 300
)

// A rankError is the reason why a process with the key that has claimed a rank is not present.
type rankError string

func (e rankError) Error() string { return string(e) }

// rejections are the callers of the root that were rejected or have gone.
type rejections struct {
	count int
	// kept holds the first that differ. Unproven callers differ by host and class only: they may have chosen bytes of
	// an error's text.
	kept []rejection
	// fullLogged is set when a caller for which there was no room has been logged.
	fullLogged bool
}

type rejection struct {
	host, class string
	rank        bool
	why         string
	times       int
}

// record records a caller, and reports whether it is the first of its kind from its host. All callers for which there
// is no room are one kind.
func (r *rejections) record(from net.Addr, err error) (first bool) {
	r.count++
	host, _, splitErr := net.SplitHostPort(from.String())
	if splitErr != nil {
		host = from.String()
	}
	_, rank := err.(rankError)
	class := err.Error()
	if !rank {
		class = proof.Class(err, ErrProtocol)
	}
	room := mostRejections
	for i := range r.kept {
		one := &r.kept[i]
		if one.host == host && one.class == class && one.rank == rank {
			one.times++
			return false
		}
		if one.rank == rank {
			room--
		}
	}
	if room == 0 {
		first, r.fullLogged = !r.fullLogged, true
		return first
	}
	// The caller's port differs each time.
	why := legible(strings.ReplaceAll(err.Error(), "->"+from.String(), ""))
	r.kept = append(r.kept, rejection{host: host, class: class, rank: rank, why: why[:min(len(why), mostReasonBytes)], times: 1})
	return true
}

// String lists the rejections.
func (r *rejections) String() string {
	var texts []string
	kept := 0
	for _, one := range r.kept {
		kept += one.times
		times := ""
		if one.times > 1 {
			times = fmt.Sprintf(" (%d times)", one.times)
		}
		texts = append(texts, one.host+times+": "+one.why)
	}
	if kept < r.count {
		texts = append(texts, fmt.Sprintf("and %d more", r.count-kept))
	}
	return strings.Join(texts, "; ")
}

// legible replaces unprintable characters by spaces in a text that may come from a peer, so that it cannot overwrite a
// terminal.
func legible(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

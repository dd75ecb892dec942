package root

import (
	"fmt"
	"net"
	"strings"
	"unicode"

	"github.com/onesided/rma/internal/proof"
)

const (
	// mostRefusals bounds what is kept of strangers, who may be anyone, and what is of
	// ranks.
	mostRefusals = 8
	// mostWords bounds what is kept of a reason, in bytes.
	mostWords = 300
)

// A rankError is why one who holds the key, and has claimed a rank, is not there.
type rankError string

func (e rankError) Error() string { return string(e) }

// refusals are those who came to the root and are not there.
type refusals struct {
	count int
	// kept are the first that differ. Strangers differ in host and class: the text of an
	// error may have bytes in it that they chose.
	kept []refusal
	// crowded: one for whom there was no room has been told of.
	crowded bool
}

type refusal struct {
	host, class string
	rank        bool
	why         string
	times       int
}

// note takes one, and tells whether it is the first of this kind from this host. Of
// those for which there is no room one is the first.
func (r *refusals) note(from net.Addr, err error) (first bool) {
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
	room := mostRefusals
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
		first, r.crowded = !r.crowded, true
		return first
	}
	// The caller's port is another each time.
	why := legible(strings.ReplaceAll(err.Error(), "->"+from.String(), ""))
	r.kept = append(r.kept, refusal{host: host, class: class, rank: rank, why: why[:min(len(why), mostWords)], times: 1})
	return true
}

// String names them.
func (r *refusals) String() string {
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

// legible is a text that may have a peer's words in it, which must not write over a
// terminal.
func legible(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

package root

import (
	"fmt"
	"net"
	"strings"
)

// mostRefusals bounds what is kept of those who were turned away: they may be anyone.
const mostRefusals = 8

// refusals are those who came to the root and are not there.
type refusals struct {
	count int
	// kept are the first that differ in host or reason.
	kept []refusal
}

type refusal struct {
	host, why string
	times     int
}

// note takes one, and tells whether it is the first for this reason from this host. Of
// those for which there is no room one is the first.
func (r *refusals) note(from net.Addr, err error) (first bool) {
	r.count++
	// The caller's port is another each time.
	why := strings.ReplaceAll(err.Error(), "->"+from.String(), "")
	host, _, err := net.SplitHostPort(from.String())
	if err != nil {
		host = from.String()
	}
	kept := 0
	for i := range r.kept {
		if r.kept[i].host == host && r.kept[i].why == why {
			r.kept[i].times++
			return false
		}
		kept += r.kept[i].times
	}
	if len(r.kept) == mostRefusals {
		return kept == r.count-1
	}
	r.kept = append(r.kept, refusal{host: host, why: why, times: 1})
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

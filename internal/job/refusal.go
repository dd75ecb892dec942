package job

import "slices"

// What a rank refuses of the messages to a Service is told to who flushes for that Service:
// several have one link, and one that is flushed first must not hear of what another asked.

// refusal is an error of a message to a Service, whose number is 0 if it was to none.
type refusal struct {
	service uint32
	// before is the question that was the next to be answered when it came: it is of what was told before that.
	before uint64
	// ticket is that of the grant of the Service that was the next to come, 0 before that has.
	ticket uint32
	err    error
}

// isOf tells whether it is of what came before a mark.
func (r *refusal) isOf(m Mark) bool {
	switch {
	case m.ticket != 0:
		return r.ticket != 0 && int32(m.ticket-r.ticket) >= 0
	case m.strict:
		return r.before <= m.asked
	}
	return true
}

// refusals are the first of each Service between two answers.
type refusals []refusal

// mostRefusals bounds them: of a Service that was stopped meanwhile nobody takes any. The newest of a Service that has
// several goes first, and where none has the oldest of all.
const mostRefusals = 64

func (r *refusals) note(service uint32, before uint64, err error) {
	if slices.ContainsFunc(*r, func(old refusal) bool { return old.service == service && old.before == before && old.ticket == 0 }) {
		return
	}
	if len(*r) == mostRefusals {
		last := r.spare()
		*r = slices.Delete(*r, last, last+1)
	}
	*r = append(*r, refusal{service: service, before: before, err: err})
}

// spare is the one that makes place for another.
func (r refusals) spare() int {
	for i := len(r) - 1; i > 0; i-- {
		if slices.ContainsFunc(r[:i], func(one refusal) bool { return one.service == r[i].service }) {
			return i
		}
	}
	return 0
}

// granted notes that a grant of a Service has come, by its ticket.
func (r refusals) granted(service, ticket uint32) {
	for i := range r {
		if r[i].service == service && r[i].ticket == 0 {
			r[i].ticket = ticket
		}
	}
}

// take takes those to some services, or to any if none is named, that are of what came before a mark, and gives the
// first.
func (r *refusals) take(of []uint32, m Mark) (first error) {
	*r = slices.DeleteFunc(*r, func(one refusal) bool {
		taken := one.isOf(m) && (len(of) == 0 || slices.Contains(of, one.service))
		if taken && first == nil {
			first = one.err
		}
		return taken
	})
	return first
}

package world

import "slices"

// What a rank refuses of the messages to a Service is told to who flushes for that Service:
// several have one link, and one that is flushed first must not hear of what another asked.

// refusal is an error of a message to a Service, whose number is 0 if it was to none.
type refusal struct {
	service uint32
	// before is the question that was the next to be answered when it came: it is of what was told before that. It is 0
	// once the Service has told by itself that this is done.
	before uint64
	err    error
}

// refusals are the first of each Service between two answers.
type refusals []refusal

// mostRefusals bounds them: of a Service that was stopped meanwhile nobody takes any. The newest of a Service that has
// several goes first, and where none has the oldest of all.
const mostRefusals = 64

func (r *refusals) note(service uint32, before uint64, err error) {
	if slices.ContainsFunc(*r, func(old refusal) bool { return old.service == service && old.before == before }) {
		return
	}
	if len(*r) == mostRefusals {
		last := r.spare()
		*r = slices.Delete(*r, last, last+1)
	}
	*r = append(*r, refusal{service, before, err})
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

// settle has those to a Service be of what is done.
func (r refusals) settle(service uint32) {
	for i := range r {
		if r[i].service == service {
			r[i].before = 0
		}
	}
}

// take takes those to some services, or to any if none is named, of what was told before a question, and gives the first.
func (r *refusals) take(of []uint32, question uint64) (first error) {
	*r = slices.DeleteFunc(*r, func(one refusal) bool {
		taken := one.before <= question && (len(of) == 0 || slices.Contains(of, one.service))
		if taken && first == nil {
			first = one.err
		}
		return taken
	})
	return first
}

package world

import "slices"

// What a rank refuses of the messages to a Service is told to who flushes for that Service:
// several have one link, and one that is flushed first must not hear of what another asked.

// refusal is an error of a message to a Service, whose number is 0 if it was to none.
type refusal struct {
	service uint32
	err     error
}

// refusals are the first of each Service.
type refusals []refusal

// mostRefusals bounds them: of a Service that was stopped meanwhile nobody takes any. The
// oldest go first.
const mostRefusals = 64

func (r *refusals) note(service uint32, err error) {
	if slices.ContainsFunc(*r, func(old refusal) bool { return old.service == service }) {
		return
	}
	if len(*r) == mostRefusals {
		*r = slices.Delete(*r, 0, 1)
	}
	*r = append(*r, refusal{service, err})
}

// take is the first of those to some services, or to any if none is named.
func (r *refusals) take(of []uint32) error {
	for i, one := range *r {
		if len(of) == 0 || slices.Contains(of, one.service) {
			*r = slices.Delete(*r, i, i+1)
			return one.err
		}
	}
	return nil
}

package rails

import "github.com/onesided/rma/verbs"

// StripeFrom has requests be striped from a length on.
func StripeFrom(d verbs.Device, least int) {
	inner(d).division.least, inner(d).division.each = least, least
}

// OnOthers is how much is outstanding on other rails than the first.
func OnOthers(d verbs.Device) int64 { return inner(d).onOthers.Load() }

// Known is how many regions of the peer's a queue pair can stripe to, Told of how many of this
// side's the peer was told, Old how many keys peers remember of regions that have ended.
func Known(q verbs.QueuePair) (n int) {
	for _, k := range q.(*queuePair).keys.known {
		if k.answered {
			n++
		}
	}
	return n
}

func Told(q verbs.QueuePair) int { return len(q.(*queuePair).keys.told) }

func Old(d verbs.Device) int { return len(inner(d).regions.old) }

// Pairs are the queue pairs on the rails.
func Pairs(q verbs.QueuePair) []verbs.QueuePair { return q.(*queuePair).pairs }

// Ask has a peer that never answers know the region.
func Ask(r verbs.MemoryRegion) {
	q := &queuePair{device: r.(*region).device}
	q.keys.told = map[uint32]*region{}
	for i := range q.keys.requests {
		q.keys.requests[i].open = true
	}
	r.(*region).askers = []*queuePair{q}
}

// inner is the device within what New gives.
func inner(d verbs.Device) *device {
	return d.(interface{ self() *device }).self()
}

func (d *device) self() *device { return d }

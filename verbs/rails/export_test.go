package rails

import "github.com/onesided/rma/verbs"

// StripeFrom has requests be striped from a length on.
func StripeFrom(d verbs.Device, least int) {
	inner(d).division.least, inner(d).division.each = least, least
}

// OnOthers is how much is outstanding on other rails than the first.
func OnOthers(d verbs.Device) int64 { return inner(d).onOthers.Load() }

// Known is how many regions of the peer a queue pair can stripe to, Advertised how many of this side's the peer knows,
// Old how many keys peers remember of regions that have ended.
func Known(q verbs.QueuePair) (n int) {
	for _, k := range q.(*queuePair).keys.known {
		if k.responded {
			n++
		}
	}
	return n
}

func Advertised(q verbs.QueuePair) int { return len(q.(*queuePair).keys.advertised) }

func Old(d verbs.Device) int { return len(inner(d).regions.old) }

// Pairs are the queue pairs on the rails.
func Pairs(q verbs.QueuePair) []verbs.QueuePair { return q.(*queuePair).pairs }

// Request has a peer that never responds know the region.
func Request(r verbs.MemoryRegion) {
	q := &queuePair{device: r.(*region).device}
	q.keys.advertised = map[uint32]*region{}
	for i := range q.keys.requests {
		q.keys.requests[i].open = true
	}
	r.(*region).requesters = []*queuePair{q}
}

// inner is the device within what New gives.
func inner(d verbs.Device) *device {
	return d.(interface{ self() *device }).self()
}

func (d *device) self() *device { return d }

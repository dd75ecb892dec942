//go:build ibverbs && cgo && linux

package ibv

import "github.com/onesided/rma/verbs"

// inlines are the sizes of inline data that are tried until the card accepts one.
var inlines = [...]int{mostInline, 128, 96, 64, 32, 0}

// measure makes a queue pair to find the limits of this card's queue pairs.
func (d *device) measure(p *port) error {
	d.attributes = verbs.Attributes{
		Name: deviceName + ":" + d.name, MaxSegments: min(mostSegments, d.limits.segments),
		MaxMessage: int(min(p.message, 1<<30)), CoherentAtomics: d.limits.coherentAtomics, CardAtomics: d.limits.atomics, OrderedWrites: d.limits.orderedWrites, Resends: true,
	}
	q, err := d.card.newQueue(1)
	if err != nil {
		return d.refused("creating a completion queue", err)
	}
	var pair rawPair
	for _, wanted := range inlines {
		// A card that supports less inline data fails here.
		var inline int
		if pair, inline, err = d.card.newPair(q, q, sizes{sends: 1, receives: 1, segments: d.attributes.MaxSegments, inline: wanted}); err == nil {
			d.attributes.MaxInline = min(inline, mostInline)
			break
		}
	}
	if err != nil {
		_ = q.destroy()
		return d.refused("creating a queue pair", err)
	}
	if err := pair.destroy(); err != nil {
		return d.refused("destroying a queue pair", err)
	}
	d.limits.queuesFixed = q.resize(q.room()+1) != nil
	if err := q.destroy(); err != nil {
		return d.refused("destroying a completion queue", err)
	}
	d.rate = p.rate
	return nil
}

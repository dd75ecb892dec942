//go:build ibverbs && cgo && linux

package ibv

import "github.com/onesided/rma/verbs"

// inlines are how many bytes of inline data are asked for, until a card takes so many.
var inlines = [...]int{mostInline, 128, 96, 64, 32, 0}

// measure makes a queue pair to find out what those of this card take.
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
		// A card that takes less inline data says so in this way.
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

//go:build ibverbs && cgo && linux

package ibv

import "github.com/onesided/rma/verbs"

// measure makes a queue pair to find out what those of this card take.
func (d *device) measure(p *port) error {
	d.attributes = verbs.Attributes{
		Name: deviceName + ":" + d.name, MaxSegments: min(mostSegments, d.limits.segments),
		MaxMessage: int(min(p.message, 1<<30)), CoherentAtomics: d.limits.coherentAtomics, CardAtomics: d.limits.atomics,
	}
	q, err := d.card.newQueue(1)
	if err != nil {
		return d.refused("creating a completion queue", err)
	}
	pair, inline, err := d.card.newPair(q, q, sizes{sends: 1, receives: 1, segments: d.attributes.MaxSegments, inline: mostInline})
	if err != nil {
		// A card that takes less inline data says so in this way.
		if pair, inline, err = d.card.newPair(q, q, sizes{sends: 1, receives: 1, segments: d.attributes.MaxSegments}); err != nil {
			_ = q.destroy()
			return d.refused("creating a queue pair", err)
		}
	}
	d.attributes.MaxInline = min(inline, mostInline)
	if err := pair.destroy(); err != nil {
		return d.refused("destroying a queue pair", err)
	}
	if err := q.destroy(); err != nil {
		return d.refused("destroying a completion queue", err)
	}
	d.rate = p.rate
	return nil
}

package job

import (
	"math/bits"
	"time"

	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/verbs"
)

// A collective can be done in several ways, of which some take few messages and others few
// bytes. Which is the cheapest every rank works out for itself, and all alike: from the tolls
// that all have told of their cards when they joined the job, and in whole numbers.

// A toll is what messages take over a card, in nanoseconds: each of them, and a mebibyte of them
// and of a copy.
type toll struct{ message, mebibyte, copied uint64 }

// mostToll bounds each, since others tell of theirs.
const mostToll = 1 << 30

func tollOf(c *verbs.Costs) toll {
	per := func(bandwidth float64) uint64 {
		if bandwidth <= 0 {
			return 0
		}
		return uint64(min(float64(time.Second)/bandwidth*(1<<20), mostToll))
	}
	copied := per(c.CopyBandwidth)
	return toll{
		message:  uint64(max(min(c.Post+c.Latency+c.Serve+2*c.CopyLatency, mostToll), 1)),
		mebibyte: min(per(c.Bandwidth)+2*copied, mostToll),
		copied:   min(copied, mostToll),
	}
}

// dearer is the higher of both in each.
func (t toll) dearer(other toll) toll {
	return toll{max(t.message, other.message), max(t.mebibyte, other.mebibyte), max(t.copied, other.copied)}
}

// linked tells whether some have to use the network.
func (j *job) linked() bool {
	return len(j.hosts.ranks) > 1 || j.contacts[0].addresses[sharedCard] == ""
}

// toll is what the ranks' cards make messages of collectives take: those of the network if
// some have to use that.
func (j *job) toll() toll {
	kind := networkCard
	if !j.linked() {
		kind = sharedCard
	}
	var t toll
	for i := range j.contacts {
		t = t.dearer(j.contacts[i].tolls[kind])
	}
	return t
}

// An effort is what a way of doing a collective takes: messages, bytes, and bytes that are copied, or combined
// with others, which are one behind the other; and messages, bytes and combined bytes of all ranks.
type effort struct {
	messages, bytes, copied, added  uint64
	allMessages, allBytes, allAdded uint64
	// piece is how long its messages are.
	piece uint64
}

// cost is about how long it takes. Where ranks share cores what all do counts.
func (w *World) cost(e effort) uint64 {
	if w.rooted {
		e.messages, e.bytes, e.added = max(e.messages, e.allMessages), max(e.bytes, e.allBytes), max(e.added, e.allAdded)
	}
	mebibyte := w.toll.mebibyte
	if w.linked && !w.settings.tuning.NoStaging && e.piece >= uint64(w.rendezvousFrom()) {
		// The receiver tells where first, and copies while more comes.
		e.messages *= 2
		mebibyte = max(mebibyte-min(2*w.toll.copied, mebibyte), w.toll.copied)
	}
	// To combine bytes takes longer than to copy them, but not much.
	return e.messages*w.toll.message + e.bytes>>10*mebibyte>>10 + (e.copied+e.added)>>10*w.toll.copied>>10
}

// choose is the way that is taken of those that there are, none of which is tuning.Plain's.
func (w *World) choose(plain effort, short, long *effort) tuning.Algorithm {
	ways := [tuning.Algorithms]*effort{tuning.Plain: &plain, tuning.Short: short, tuning.Long: long}
	if wanted := w.settings.tuning.Algorithm; wanted != tuning.ByCost {
		if ways[wanted] != nil {
			return wanted
		}
		return tuning.Plain
	}
	best := tuning.Plain
	for way := tuning.Short; way < tuning.Algorithms; way++ {
		if ways[way] != nil && w.cost(*ways[way]) < w.cost(*ways[best]) {
			best = way
		}
	}
	return best
}

// rounds is log2 of the size, rounded up.
func (w *World) rounds() uint64 { return uint64(bits.Len(uint(w.size - 1))) }

// reduceWay is how Reduce is done with so many bytes of a rank, allReduceWay how AllReduce is,
// and so on.
func (w *World) reduceWay(length int) tuning.Algorithm {
	n, p, f := uint64(length), uint64(w.size), w.fold()
	levels, pairs := f.levels(), uint64(f.pairs)
	return w.choose(
		effort{piece: n, messages: w.rounds(), bytes: w.rounds() * n, added: w.rounds() * n, allMessages: p - 1, allBytes: (p - 1) * n, allAdded: (p - 1) * n}, nil,
		&effort{piece: n / 2, messages: 2*levels + 2*min(pairs, 1), bytes: 2*n + 2*min(pairs, 1)*n, added: n + min(pairs, 1)*n, allMessages: uint64(f.power)*(levels+1) + pairs, allBytes: 2 * (p - 1) * n, allAdded: (p - 1) * n})
}

// A way is what was chosen last for a call: programs mostly make the same ones.
type way struct {
	length int
	chosen tuning.Algorithm
}

func (w *World) allReduceWay(length int) tuning.Algorithm {
	if known := &w.allReduced; known.length != length || known.chosen == tuning.ByCost {
		*known = way{length, w.chooseAllReduce(length)}
	}
	return w.allReduced.chosen
}

func (w *World) broadcastWay(length int) tuning.Algorithm {
	if known := &w.broadcasted; known.length != length || known.chosen == tuning.ByCost {
		*known = way{length, w.chooseBroadcast(length)}
	}
	return w.broadcasted.chosen
}

func (w *World) chooseAllReduce(length int) tuning.Algorithm {
	n, p, f := uint64(length), uint64(w.size), w.fold()
	levels, power, pairs := f.levels(), uint64(f.power), uint64(f.pairs)
	ends := 2 * min(pairs, 1)
	return w.choose(
		effort{piece: n, messages: 2 * w.rounds(), bytes: 2 * w.rounds() * n, added: w.rounds() * n, allMessages: 2 * (p - 1), allBytes: 2 * (p - 1) * n, allAdded: (p - 1) * n},
		&effort{piece: n, messages: levels + ends, bytes: (levels + ends) * n, added: (levels + ends/2) * n, allMessages: power*levels + 2*pairs, allBytes: (power*levels + 2*pairs) * n, allAdded: (power*levels + pairs) * n},
		&effort{piece: n / 2, messages: 2*levels + ends, bytes: 2*n - 2*n/power + ends*n, added: n - n/power + ends/2*n, allMessages: 2*power*levels + 2*pairs, allBytes: 2 * (p - 1) * n, allAdded: (p - 1) * n})
}

func (w *World) chooseBroadcast(length int) tuning.Algorithm {
	n, p, rounds := uint64(length), uint64(w.size), w.rounds()
	return w.choose(
		effort{piece: n, messages: rounds, bytes: rounds * n, allMessages: p - 1, allBytes: (p - 1) * n}, nil,
		&effort{piece: n / p, messages: rounds + p - 1, bytes: 2 * n, allMessages: p * p, allBytes: (p - 1 + rounds/2) * n})
}

func (w *World) allGatherWay(length int) tuning.Algorithm {
	n, p, rounds := uint64(length), uint64(w.size), w.rounds()
	return w.choose(
		effort{piece: n * p / 2, messages: rounds, bytes: (p - 1) * n, copied: p * n, allMessages: p * rounds, allBytes: p * (p - 1) * n}, nil,
		&effort{piece: n, messages: p - 1, bytes: (p - 1) * n, allMessages: p * (p - 1), allBytes: p * (p - 1) * n})
}

func (w *World) allToAllWay(length int) tuning.Algorithm {
	n, p, rounds := uint64(length), uint64(w.size), w.rounds()
	if w.size > pairwiseRanks {
		return tuning.Short
	}
	return w.choose(
		effort{piece: n, messages: p - 1, bytes: (p - 1) * n, allMessages: p * (p - 1), allBytes: p * (p - 1) * n},
		&effort{piece: n * p / 2, messages: rounds, bytes: rounds * p * n / 2, copied: (rounds + 2) * p * n, allMessages: p * rounds, allBytes: p * rounds * p * n / 2}, nil)
}

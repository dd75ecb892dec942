package job

import (
	"fmt"

	"github.com/onesided/rma/verbs"
)

// A job is what all ranks know of all. Ranks of one process share it; nothing changes it.
type job struct {
	ranks    []introduction
	contacts []contact
	hosts    hosts
	// count is how many ranks share some cores of a machine, or all of it are on; rooted tells that these are less anywhere.
	count  map[cores]int
	rooted bool
}

// cores are those of a machine that ranks are bound to, or all.
type cores struct{ machine, bound string }

func (i *introduction) place() cores { return cores{i.machine, i.bound} }

// newJob is the job of ranks that have introduced themselves and told where they are found.
func newJob(ranks []introduction, texts []string) (*job, error) {
	j := &job{ranks: ranks, contacts: make([]contact, len(texts)), count: make(map[cores]int)}
	for rank, text := range texts {
		var err error
		if j.contacts[rank], err = parseContact(text); err != nil {
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	j.hosts = hostsOf(j.contacts, ranks)
	for i := range ranks {
		place := ranks[i].place()
		j.count[place]++
		if place.bound != "" {
			j.count[cores{machine: place.machine}]++
		}
	}
	for i := range ranks {
		j.rooted = j.rooted || j.oversubscribed(i)
	}
	return j, nil
}

// oversubscribed reports whether more ranks share the cores of a rank than these are. If some ranks are bound to a part of the
// cores that others are bound to, it reports whether the machine has more ranks than cores.
func (j *job) oversubscribed(rank int) bool {
	i := &j.ranks[rank]
	return j.count[i.place()] > i.cores || i.all > 0 && j.count[cores{machine: i.machine}] > i.all
}

// kindTo is the kind of card over which this rank reaches another: memory that is shared
// with those on its host, the network to others.
func (w *World) kindTo(rank int) cardKind {
	kind := networkCard
	if of := w.job.hosts.of; of[rank] == of[w.rank] {
		kind = w.home.kind
	}
	if w.cards[kind] == nil {
		kind = w.home.kind
	}
	return kind
}

// cardTo is that card.
func (w *World) cardTo(rank int) *card { return w.cards[w.kindTo(rank)] }

// addressOf is where a rank's card is that this one reaches.
func (w *World) addressOf(rank int) string { return w.job.contacts[rank].addresses[w.kindTo(rank)] }

// reachable tells why a rank cannot be reached, if so.
func (w *World) reachable() error {
	for rank := range w.size {
		if w.addressOf(rank) == "" {
			return &verbs.CapabilityError{Device: w.Route(rank), Capability: fmt.Sprintf("reach rank %d", rank), Reason: "that rank has not opened it"}
		}
	}
	return nil
}

// Mapped reports whether this rank can map the memory of a rank.
func (w *World) Mapped(rank int) bool { return rank == w.rank || w.maps(rank) }

// maps is Mapped but for this rank itself, which maps its memory only where the card does.
func (w *World) maps(rank int) bool {
	of := w.job.hosts.of
	return w.sharing && of[rank] == of[w.rank]
}

// Route describes how this rank reaches a rank, such as "shm, mapped".
func (w *World) Route(rank int) string {
	switch {
	case rank == w.rank:
		return "self"
	case w.maps(rank):
		return shmDevice + ", mapped"
	case w.kindTo(rank) == sharedCard:
		return shmDevice
	}
	return w.networkName
}

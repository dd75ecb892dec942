package job

// The hosts of a job are its groups of ranks that map each other's memory, those of one
// rank included, as all ranks know them of all.
type hosts struct {
	// ranks are those of each host, in order, the hosts in the order of their first ranks.
	ranks [][]int
	// of is the host of each rank.
	of []int
}

// hostsOf finds them by what the ranks have told: those that have opened shared memory
// share it where they say that they are on one host.
func hostsOf(contacts []contact, ranks []introduction) hosts {
	h := hosts{of: make([]int, len(contacts))}
	byName := make(map[string]int)
	for rank := range contacts {
		host := len(h.ranks)
		if contacts[rank].addresses[sharedCard] != "" {
			if known, ok := byName[ranks[rank].host]; ok {
				host = known
			}
			byName[ranks[rank].host] = host
		}
		if host == len(h.ranks) {
			h.ranks = append(h.ranks, nil)
		}
		h.of[rank] = host
		h.ranks[host] = append(h.ranks[host], rank)
	}
	return h
}

// Hosts is how many groups of ranks there are of which each maps the memory of those of its
// own; regular tells that this rank maps all that of its own group, and no other.
func (w *World) Hosts() (n int, regular bool) {
	regular = true
	for rank, host := range w.hosts.of {
		regular = regular && w.Mapped(rank) == (host == w.hosts.of[w.rank])
	}
	return len(w.hosts.ranks), regular
}

// mates are the ranks of this one's host, itself included. The first leads.
func (w *World) mates() []int { return w.hosts.ranks[w.hosts.of[w.rank]] }

// leads tells whether this rank speaks for its host.
func (w *World) leads() bool { return w.mates()[0] == w.rank }

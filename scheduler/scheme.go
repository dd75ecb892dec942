package scheduler

// A Scheme says how to arrange the operations of an epoch. It is a set of single schemes. Each can be left out, so that
// its effect can be measured.
type Scheme uint8

const (
	// Defer makes operations wait for a synchronization, or until waiting would cost more than it saves. Without Defer
	// each operation is sent when it is called, and no other scheme matters.
	Defer Scheme = 1 << iota
	// GetsFirst sends operations that read before operations that write, because the origin waits for the data.
	GetsFirst
	// Interleave alternates direct reads and writes, a read first, so that both directions of the link carry data. It
	// requires GetsFirst.
	Interleave
	// Pack sends small operations together in messages, and with the synchronization that completes them, where that
	// costs less than sending each by itself.
	Pack
	// Merge combines small consecutive puts into one operation if each touches or overlaps the range of those before
	// it. It also queues consecutive accumulates of at most a word as one run.
	Merge
	// Early starts operations before the synchronization when enough of them wait, so that data moves while the program
	// computes. Case overlap_put_lat of 1 MiB takes 1.74 times as long without Early on simulated cards of
	// connectx-ddr-2009, 1.48 times on pcie-2005, and 1.04 times on ndr-2024. Over TCP it gains nothing, and the
	// difference is within 5 %.
	// The command is bench schemes -device sim:PROFILE overlap_put_lat:1048576, without -device for TCP.
	Early
	// Adapt leaves out the single schemes that have not paid in earlier epochs.
	Adapt

	// All is the set of all single schemes.
	All = Defer | GetsFirst | Interleave | Pack | Merge | Early | Adapt
)

// has reports whether the scheme contains all of some.
func (s Scheme) has(some Scheme) bool { return s&some == some }

package world

import (
	"time"

	"github.com/onesided/rma/regcache"
	"github.com/onesided/rma/scheduler/transfer"
)

// Stats counts what a rank has done in a World so far. Loads and stores of mapped memory are not counted, and neither are
// requests of peers. window.Stats counts what windows have done.
type Stats struct {
	// Rank and Size are those of the World. Failures is the number of ranks that are known to have failed.
	Rank, Size, Failures int
	// Routes counts the other ranks by how this rank reaches them: see Route.
	Routes map[string]int
	// Collectives counts those that have ended, barriers included.
	Collectives uint64
	// Messages counts the messages that have left; several travel together. Writes, Reads and Atomics count the work
	// requests of this rank that moved operations directly, Sends those that carried messages.
	Messages, Sends, Writes, Reads, Atomics uint64
	// Bytes is what these requests moved, in bytes. For messages that includes their headers.
	Bytes uint64
	// Sleeps counts how often a call of any World of this rank slept; Slept is how long in all.
	Sleeps uint64
	Slept  time.Duration
	// Transfers counts how memory got to a network card that needs registrations.
	Transfers Transfers
}

// Transfers counts how memory that the program had not registered got to the network card. All is zero for a card that needs no registration.
type Transfers struct {
	// Operations and Bytes are counted by protocol. Cache and CachingPipeline include memory that was registered earlier.
	Operations, Bytes [transfer.Protocols]uint64
	// Kept describes the memory that is kept registered.
	Kept regcache.Stats
}

// Stats may be called at any time. It locks each connection for a moment, and allocates.
func (w *World) Stats() Stats {
	s := w.made("Stats").Stats()
	return Stats{
		Rank: s.Rank, Size: s.Size, Failures: s.Failures, Routes: s.Routes, Collectives: s.Collectives,
		Messages: s.Messages, Sends: s.Sends, Writes: s.Writes, Reads: s.Reads, Atomics: s.Atomics, Bytes: s.Bytes,
		Sleeps: s.Sleeps, Slept: s.Slept, Transfers: Transfers(s.Transfers),
	}
}

// Package tuning holds the switches by which the benchmark and tests leave out, or force, one mechanism of the library. Programs have
// none of them: their jobs have the zero Tuning.
package tuning

import (
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs/tcp"
)

// A Tuning is the set of switches of a job. The zero value leaves nothing out and chooses by cost. The ranks of a job need the same
// Algorithm, NoPipes, NoNotes and NoStaging, else none of them gets a World. Each rank has the other fields for itself.
type Tuning struct {
	// Algorithm is that of collectives.
	Algorithm Algorithm
	// NoPipes sends the messages of collectives over links also between ranks that map each other's memory. Else they go by pipes
	// there (package internal/pipe).
	NoPipes bool
	// NoNotes sends messages of collectives of at most 48 bytes as longer ones. Else they go by notes, a line each, between ranks that
	// map each other's memory, of at most 64 ranks.
	NoNotes bool
	// NoStaging sends long messages of collectives as short ones. Else they go through memory that is made for them when it is first
	// needed, of at most 1 MiB for each rank and World: that of the sender between ranks that map each other's memory (staging), that
	// of the receiver between others (landing).
	NoStaging bool

	// Rings says whether short messages are written into rings in the memory of their receivers (package verbs/channel).
	Rings Rings
	// NoCollecting posts each read, write and message at once, and each message in an eager buffer of its own. Else a link collects
	// short ones until it has 32, or a call waits for them.
	NoCollecting bool
	// NoInline has the card fetch all data. Else short data goes to the card within the request that writes or sends it.
	NoInline bool
	// NoStandBack has the goroutine that makes progress in the background never pause where the program calls often.
	NoStandBack bool

	// NoProtocols are the protocols left out for memory that the card does not know. Without transfer.Cache and
	// transfer.CachingPipeline nothing stays registered. Where all other protocols are left out too, memory is copied in the simplest
	// way.
	NoProtocols transfer.Set
	// NoSchemes are the schemes left out in the windows of the rank.
	NoSchemes scheduler.Scheme
	// NoSockets are the optimizations left out in TCP.
	NoSockets tcp.Optimization

	// NoHugePages shares memory in pages of 4 KiB only. Else shared memory of 2 MiB and more is in pages of 2 MiB, where Linux has
	// some left.
	NoHugePages bool
	// NoStriping has ranks with several cards use only the first.
	NoStriping bool
	// Rails is the number of cards of a rank of world.Simulate; 0 is 1.
	Rails int
	// MTU is the path MTU of RDMA cards in bytes; 0 is that of their ports.
	MTU int
}

// An Algorithm is a way in which collectives are done, where there are several.
type Algorithm uint8

const (
	// ByCost takes the algorithm that is cheapest by the costs of the ranks' cards.
	ByCost Algorithm = iota
	// Plain goes along a binomial tree, and AllReduce along one to rank 0 and back. AllGather
	// takes log2(Size) messages, and AllToAll one for each rank, if they are at most 16.
	Plain
	// Short takes the fewest messages one after the other: AllReduce doubles the ranks whose sum each rank
	// has, and AllToAll forwards parts. Among ranks that share cores and memory AllReduce adds up
	// a line, 64 bytes, in one place, where they meet, and Broadcast has each of at most 32 ranks read at most 96
	// bytes where the root has left them.
	Short
	// Long takes the fewest bytes: Reduce and AllReduce halve what each rank adds up, Broadcast
	// scatters parts, which go around a ring then, as those of AllGather do.
	Long
	// Algorithms is the number of algorithms, ByCost included.
	Algorithms
)

// Rings says where rings are used.
type Rings uint8

const (
	// RingsByCost uses rings on the cards that suit them, but not in virtual time, where polling takes time.
	RingsByCost Rings = iota
	// RingsAlways uses rings also in virtual time.
	RingsAlways
	// RingsNever uses no rings.
	RingsNever
)

// Package tuning holds the switches of the benchmark and of tests. Each switch leaves out, or forces, one mechanism of
// the library. Programs have none of them: their jobs have the zero Tuning.
package tuning

import (
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs/tcp"
)

// A Tuning is the set of switches of a job. The zero value leaves nothing out and chooses by cost. The ranks of a job
// need the same Algorithm, NoPipes, NoCells and NoStaging; otherwise none of them gets a World. Each rank may have its
// own values of the other fields.
type Tuning struct {
	// Algorithm is the algorithm of collectives.
	Algorithm Algorithm
	// NoPipes sends the messages of collectives over links, even between ranks that map each other's memory. By default
	// such ranks use pipes (package internal/pipe).
	NoPipes bool
	// NoCells sends messages of collectives of at most 48 bytes like longer ones. By default each is a cell, a cache
	// line, between ranks that map each other's memory, if they are at most 64.
	NoCells bool
	// NoStaging sends long messages of collectives like short ones. By default they go through memory that is made when
	// it is first needed, at most 1 MiB for each rank and World. Between ranks that map each other's memory it belongs
	// to the sender (staging), and otherwise to the receiver (landing).
	NoStaging bool

	// Rings selects where short messages are written into rings in the memory of their receivers (package
	// verbs/channel).
	Rings Rings
	// NoCollecting posts each read, write and message at once, and each message in an eager buffer of its own. By
	// default a link collects short ones until it has 32, or until a call waits for them.
	NoCollecting bool
	// NoInline makes the card fetch all data. By default short data goes to the card within the request that writes or
	// sends it.
	NoInline bool
	// NoStandBack keeps the goroutine that makes progress in the background running. By default it pauses while the
	// program calls often.
	NoStandBack bool

	// NoProtocols are the protocols left out for memory that the card does not know. If it has transfer.Cache and
	// transfer.CachingPipeline, nothing stays registered. If it has all protocols, memory is copied in the simplest
	// way.
	NoProtocols transfer.Set
	// NoSchemes are the schemes left out in the windows of the rank.
	NoSchemes scheduler.Scheme
	// NoSockets are the optimizations left out in TCP.
	NoSockets tcp.Optimization

	// NoHugePages shares memory only in pages of 4 KiB. By default shared memory of 2 MiB and more is in pages of 2
	// MiB, where Linux has some left.
	NoHugePages bool
	// NoStriping makes ranks with several cards use only the first one.
	NoStriping bool
	// Rails is the number of cards of a rank of world.Simulate. 0 means 1.
	Rails int
	// MTU is the path MTU of RDMA cards in bytes. 0 means that of their ports.
	MTU int
}

// An Algorithm is a way to do collectives.
type Algorithm uint8

const (
	// ByCost takes the cheapest algorithm by the costs of the ranks' cards.
	ByCost Algorithm = iota
	// Plain follows a binomial tree. AllReduce reduces to rank 0 and then broadcasts. AllGather takes log2(Size)
	// messages one after the other. AllToAll takes one message for each rank if there are at most 16 ranks.
	Plain
	// Short takes the fewest messages one after the other. AllReduce doubles the ranks whose sum each rank has, and
	// AllToAll forwards parts. Ranks that share cores and memory have two more algorithms. AllReduce adds up 64 bytes,
	// a cache line, in one place. Broadcast makes each of at most 32 ranks read at most 96 bytes where the root has
	// left them.
	Short
	// Long takes the fewest bytes. Reduce and AllReduce halve the data that each rank adds up. Broadcast scatters
	// parts, which then go around a ring, as those of AllGather do.
	Long
	// Algorithms is the number of algorithms, ByCost included.
	Algorithms
)

// Rings says where rings are used.
type Rings uint8

const (
	// RingsByCost uses rings on cards that suit them, but not in virtual time, where polling takes time.
	RingsByCost Rings = iota
	// RingsAlways uses rings in virtual time, too.
	RingsAlways
	// RingsNever uses no rings.
	RingsNever
)

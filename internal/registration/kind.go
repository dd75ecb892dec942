package registration

// A Kind is a kind of device. A pair of ranks uses the first Kind that both have and over which they reach each other.
type Kind uint8

const (
	// Shared is a device that reaches ranks which share memory.
	Shared Kind = iota
	// Network is a device that reaches every rank: over TCP, or an RDMA card.
	Network
	// Kinds is the number of kinds.
	Kinds
)

var names = [Kinds]string{Shared: "shm", Network: "network"}

// String returns the kind's name in the addresses that ranks exchange.
func (k Kind) String() string { return names[k] }

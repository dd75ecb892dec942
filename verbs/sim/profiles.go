package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Where constants come from. Letters are those of the papers that this library
// reproduces: A scheduling of one-sided operations, B frequently used buffers,
// C superpipeline, D RDMA channel, E RDMA pipeline. Others:
//
//	Liu04    J. Liu et al., Performance evaluation of InfiniBand with PCI Express,
//	         Hot Interconnects 2004, abstract
//	mthca    Linux, drivers/infiniband/hw/mthca/mthca_main.c, default profile
//	mlx4     Linux, drivers/net/ethernet/mellanox/mlx4, default profile
//	IBTA     InfiniBand Architecture Specification, table of RNR timers, code 12
//	Hoefler  T. Hoefler et al., sPIN, slides: what a message and a bus crossing take
//	Register The Register, 6 June 2011, on the latency of ConnectX-2
//	Kentino  kentino.com, "Latency dissection": one switch, NDR, 64 bytes there and back
//
// What is marked "split" no source prints: the sum that a source prints, less the shares
// that are known, in equal parts for the two cards. What is marked "typical" is of the
// right size for hardware of that time and is in no sum that a source prints.
//
// Nothing is taken from a figure that the library is to reproduce.
var profiles = []Profile{
	{
		Name: "pcie-2005", Hardware: "InfiniHost III Ex MT25208, 8x PCI Express, Xeon EM64T 3.4 GHz (A, 5.1)",

		// 3.8 us for a small message, Liu04: 0.3 + 1.6 + 0.3 + 1.6.
		Post:  300 * time.Nanosecond,  // typical
		Fetch: 1600 * time.Nanosecond, // split
		Wire:  300 * time.Nanosecond,  // typical
		Place: 1600 * time.Nanosecond, // split
		// The responder reads its memory as the sender of a write does, and the
		// requester places what comes as the receiver of one.
		TurnRead:    1600 * time.Nanosecond,
		Return:      1600 * time.Nanosecond,
		TurnAtomic:  2 * time.Microsecond,   // typical
		Acknowledge: 800 * time.Nanosecond,  // typical
		FetchInline: 1000 * time.Nanosecond, // typical: one crossing of the bus less
		Gap:         400 * time.Nanosecond,  // typical
		GapSegment:  150 * time.Nanosecond,  // typical
		PostSegment: 30 * time.Nanosecond,   // typical
		PostReceive: 200 * time.Nanosecond,  // typical
		Receive:     1 * time.Microsecond,   // typical
		Poll:        50 * time.Nanosecond,   // typical
		Complete:    100 * time.Nanosecond,  // typical
		PollRing:    10 * time.Nanosecond,   // D, 6.4
		InlineRate:  2e9,                    // typical
		RetryTime:   retryTime, Notice: notice, Silence: silence,
		StarvedWait: 640 * time.Microsecond,  // IBTA
		MaxInline:   128,                     // B, 3: what the card's inline size serves
		MaxReads:    4,                       // mthca
		Link:        964e6,                   // A, 4.1.1: one direction
		Bus:         1905e6, BusShared: true, // A, 4.1.1: both directions
		Connect: 200 * time.Microsecond, // typical
		Burst:   16 << 10,
		// C, 2, says that other boards' are of the order of 68 us and 0.2 us a page.
		Register: 68 * time.Microsecond, RegisterPage: 200 * time.Nanosecond,
		Deregister: 34 * time.Microsecond, DeregisterPage: 100 * time.Nanosecond, // typical: half
		Copy:      30 * time.Nanosecond,                                   // typical
		CopyRates: []CopyRate{{8 << 10, 6e9}, {1 << 20, 4e9}, {0, 1.5e9}}, // typical: L1, L2, memory
	},
	{
		Name: "pcix-2005", Hardware: "InfiniHost, PCI-X 64 bit 133 MHz, Xeon 3.0 GHz (A, 5.1)",

		// 5.0 us for a small message, Liu04: 0.3 + 2.2 + 0.3 + 2.2.
		Post:  300 * time.Nanosecond,  // typical
		Fetch: 2200 * time.Nanosecond, // split
		Wire:  300 * time.Nanosecond,  // typical
		Place: 2200 * time.Nanosecond, // split
		// As with pcie-2005.
		TurnRead: 2200 * time.Nanosecond, Return: 2200 * time.Nanosecond,
		TurnAtomic:  2600 * time.Nanosecond, // typical
		Acknowledge: 1100 * time.Nanosecond, // typical
		FetchInline: 1400 * time.Nanosecond, // typical
		Gap:         500 * time.Nanosecond,  // typical
		GapSegment:  200 * time.Nanosecond,  // typical
		PostSegment: 30 * time.Nanosecond,   // typical
		PostReceive: 250 * time.Nanosecond,  // typical
		Receive:     1200 * time.Nanosecond, // typical
		Poll:        50 * time.Nanosecond,   // typical
		Complete:    150 * time.Nanosecond,  // typical
		PollRing:    10 * time.Nanosecond,   // D, 6.4
		InlineRate:  1.5e9,                  // typical
		RetryTime:   retryTime, Notice: notice, Silence: silence,
		StarvedWait: 640 * time.Microsecond, // IBTA
		MaxInline:   128,                    // B, 3
		MaxReads:    4,                      // mthca
		Link:        874e6,                  // A, 4.1.1: one direction
		Bus:         934e6, BusShared: true, // A, 4.1.1: both directions, which the bus bounds (A, 5.2)
		Connect: 200 * time.Microsecond, // typical
		Burst:   16 << 10,
		// As with pcie-2005.
		Register: 68 * time.Microsecond, RegisterPage: 200 * time.Nanosecond,
		Deregister: 34 * time.Microsecond, DeregisterPage: 100 * time.Nanosecond, // typical: half
		Copy:      30 * time.Nanosecond,                                     // typical
		CopyRates: []CopyRate{{8 << 10, 5e9}, {512 << 10, 3e9}, {0, 1.2e9}}, // typical
	},
	{
		Name: "connectx-ddr-2009", Hardware: "ConnectX DDR, 8x PCI Express 1, Xeon EM64T 2.8 GHz (B, 4)",

		// 1.7 us for a small message: typical, B only plots it.
		Post: 150 * time.Nanosecond, Fetch: 650 * time.Nanosecond, Wire: 250 * time.Nanosecond, Place: 650 * time.Nanosecond,
		// As with pcie-2005.
		TurnRead: 650 * time.Nanosecond, Return: 650 * time.Nanosecond,
		TurnAtomic:  900 * time.Nanosecond, // typical
		Acknowledge: 300 * time.Nanosecond, // typical
		FetchInline: 350 * time.Nanosecond, // typical
		Gap:         150 * time.Nanosecond, // typical
		GapSegment:  50 * time.Nanosecond,  // typical
		PostSegment: 20 * time.Nanosecond,  // typical
		PostReceive: 120 * time.Nanosecond, // typical
		Receive:     250 * time.Nanosecond, // typical
		Poll:        40 * time.Nanosecond,  // typical
		Complete:    80 * time.Nanosecond,  // typical
		PollRing:    10 * time.Nanosecond,  // D, 6.4
		InlineRate:  2e9,                   // typical
		RetryTime:   retryTime, Notice: notice, Silence: silence,
		StarvedWait: 640 * time.Microsecond,  // IBTA
		MaxInline:   128,                     // B, 3
		MaxReads:    16,                      // mlx4
		Link:        1486e6,                  // Liu04: what 8x PCI Express 1 carries in one direction
		Bus:         2729e6, BusShared: true, // Liu04: in both
		Connect: 200 * time.Microsecond, // typical
		Burst:   16 << 10,
		// C, 2: the same generation of card.
		Register: 68 * time.Microsecond, RegisterPage: 200 * time.Nanosecond,
		Deregister: 34 * time.Microsecond, DeregisterPage: 100 * time.Nanosecond, // typical: half
		Copy:      30 * time.Nanosecond,                                       // typical
		CopyRates: []CopyRate{{8 << 10, 2.5e9}, {1 << 20, 2.5e9}, {0, 1.5e9}}, // typical of the machine: 2 to 3 GB/s in cache
	},
	{
		Name: "graphene-ddr", Hardware: "ConnectX DDR MT26418, Xeon X3440 (C, 2)",

		// 1.2 us for a small message: C, 3.3, says that C0 = Bcopy * 2 lambda is 8 to
		// 16 KB where Bcopy is 5 GB/s.
		Post:  100 * time.Nanosecond, // typical
		Fetch: 450 * time.Nanosecond, // split
		Wire:  200 * time.Nanosecond, // typical
		Place: 450 * time.Nanosecond, // split
		// As with pcie-2005.
		TurnRead: 450 * time.Nanosecond, Return: 450 * time.Nanosecond,
		TurnAtomic:  700 * time.Nanosecond, // typical
		Acknowledge: 220 * time.Nanosecond, // typical
		FetchInline: 250 * time.Nanosecond, // typical
		Gap:         200 * time.Nanosecond, // C, 3: the gap is 100 ns beyond the overhead
		GapSegment:  40 * time.Nanosecond,  // typical
		PostSegment: 15 * time.Nanosecond,  // typical
		PostReceive: 80 * time.Nanosecond,  // typical
		Receive:     200 * time.Nanosecond, // typical
		Poll:        25 * time.Nanosecond,  // typical
		Complete:    50 * time.Nanosecond,  // typical
		PollRing:    10 * time.Nanosecond,  // D, 6.4
		InlineRate:  4e9,                   // typical
		RetryTime:   retryTime, Notice: notice, Silence: silence,
		StarvedWait: 640 * time.Microsecond, // IBTA
		MaxInline:   128,                    // B, 3
		MaxReads:    16,                     // mlx4
		Link:        1.95e9,                 // C, figure 2: 1.9 to 2.0 GB/s
		Connect:     200 * time.Microsecond, // typical
		Burst:       16 << 10,
		Register:    68 * time.Microsecond, RegisterPage: 200 * time.Nanosecond, // C, 2
		Deregister: 34 * time.Microsecond, DeregisterPage: 100 * time.Nanosecond, // typical: half
		Copy:      20 * time.Nanosecond,                                   // typical
		CopyRates: []CopyRate{{32 << 10, 10e9}, {4 << 20, 7e9}, {0, 5e9}}, // C, figure 1: 5 GB/s from memory, higher in cache
	},
	{
		Name: "infini-qdr", Hardware: "ConnectX-2 QDR MT26428, 8x PCI Express 2, Xeon X5570 (C, 2)",

		// 1.3 us for a small message, Register.
		Post:  100 * time.Nanosecond, // typical
		Fetch: 500 * time.Nanosecond, // split
		Wire:  200 * time.Nanosecond, // typical
		Place: 500 * time.Nanosecond, // split
		// As with pcie-2005.
		TurnRead: 500 * time.Nanosecond, Return: 500 * time.Nanosecond,
		TurnAtomic:  700 * time.Nanosecond, // typical
		Acknowledge: 250 * time.Nanosecond, // typical
		FetchInline: 300 * time.Nanosecond, // typical
		Gap:         150 * time.Nanosecond, // typical
		GapSegment:  30 * time.Nanosecond,  // typical
		PostSegment: 15 * time.Nanosecond,  // typical
		PostReceive: 80 * time.Nanosecond,  // typical
		Receive:     200 * time.Nanosecond, // typical
		Poll:        25 * time.Nanosecond,  // typical
		Complete:    50 * time.Nanosecond,  // typical
		PollRing:    10 * time.Nanosecond,  // D, 6.4
		InlineRate:  4e9,                   // typical
		RetryTime:   retryTime, Notice: notice, Silence: silence,
		StarvedWait: 640 * time.Microsecond, // IBTA
		MaxInline:   128,                    // B, 3
		MaxReads:    16,                     // mlx4
		Link:        3.2e9,                  // typical: 8x PCI Express 2 less its headers
		Connect:     200 * time.Microsecond, // typical
		Burst:       16 << 10,
		Register:    68 * time.Microsecond, RegisterPage: 200 * time.Nanosecond, // C, 2: the same order on QDR boards
		Deregister: 34 * time.Microsecond, DeregisterPage: 100 * time.Nanosecond, // typical: half
		Copy:      20 * time.Nanosecond,                                   // typical
		CopyRates: []CopyRate{{32 << 10, 12e9}, {4 << 20, 8e9}, {0, 5e9}}, // typical
	},
	{
		Name: "infinihost-2003", Hardware: "InfiniHost MT23108, PCI-X 64 bit 133 MHz, Xeon 2.4 GHz (D, 6.1)",

		// D, 6.2: 6.8 us for a message of MPI over writes. What MPI takes beside the write
		// is not printed: 0.8 us, typical, leaves 6.0 us: 0.4 + 2.65 + 0.3 + 2.65.
		Post:  400 * time.Nanosecond,  // typical
		Fetch: 2650 * time.Nanosecond, // split
		Wire:  300 * time.Nanosecond,  // typical
		Place: 2650 * time.Nanosecond, // split
		// D, 6.3: by send and receive more than 2 us more, 24 % of 8.9 us. Of these 2.1 us,
		// 0.4 us go to PostReceive, 1.3 us to Receive, 0.4 us to Poll and Complete: split.
		PostReceive: 400 * time.Nanosecond, Receive: 1300 * time.Nanosecond,
		Poll: 100 * time.Nanosecond, Complete: 300 * time.Nanosecond,
		// As with pcie-2005.
		TurnRead: 2650 * time.Nanosecond, Return: 2650 * time.Nanosecond,
		TurnAtomic:  3 * time.Microsecond,   // typical
		Acknowledge: 1300 * time.Nanosecond, // typical
		FetchInline: 1800 * time.Nanosecond, // typical
		Gap:         800 * time.Nanosecond,  // typical
		GapSegment:  300 * time.Nanosecond,  // typical
		PostSegment: 50 * time.Nanosecond,   // typical
		PollRing:    10 * time.Nanosecond,   // D, 6.4: 1.3 us for 128
		InlineRate:  1e9,                    // typical
		RetryTime:   retryTime, Notice: notice, Silence: silence,
		StarvedWait: 640 * time.Microsecond, // IBTA
		MaxInline:   128,                    // B, 3
		MaxReads:    4,                      // mthca
		Link:        871e6,                  // D, 6.2
		Bus:         934e6, BusShared: true, // A, 4.1.1: the same bus
		Connect: 200 * time.Microsecond, // typical
		Burst:   16 << 10,
		// As with pcie-2005.
		Register: 68 * time.Microsecond, RegisterPage: 200 * time.Nanosecond,
		Deregister: 34 * time.Microsecond, DeregisterPage: 100 * time.Nanosecond, // typical: half
		Copy:      50 * time.Nanosecond,                                     // typical
		CopyRates: []CopyRate{{4 << 10, 4e9}, {256 << 10, 2e9}, {0, 800e6}}, // typical: half of 8 KB L1 and 512 KB L2 (D, 6.1)
	},
	{
		Name: "lioncub-2006", Hardware: "Mellanox Lion Cub, PCI Express, Xeon EM64T 3.4 GHz (E, 4)",

		// 3.8 us for a small message, Liu04: the same bus and generation as pcie-2005.
		Post: 300 * time.Nanosecond, Fetch: 1600 * time.Nanosecond, Wire: 300 * time.Nanosecond, Place: 1600 * time.Nanosecond,
		// As with pcie-2005.
		TurnRead: 1600 * time.Nanosecond, Return: 1600 * time.Nanosecond,
		TurnAtomic:  2 * time.Microsecond,   // typical
		Acknowledge: 800 * time.Nanosecond,  // typical
		FetchInline: 1000 * time.Nanosecond, // typical
		Gap:         400 * time.Nanosecond,  // typical
		GapSegment:  150 * time.Nanosecond,  // typical
		PostSegment: 30 * time.Nanosecond,   // typical
		PostReceive: 200 * time.Nanosecond,  // typical
		Receive:     1 * time.Microsecond,   // typical
		Poll:        50 * time.Nanosecond,   // typical
		Complete:    100 * time.Nanosecond,  // typical
		PollRing:    10 * time.Nanosecond,   // D, 6.4
		InlineRate:  2e9,                    // typical
		RetryTime:   retryTime, Notice: notice, Silence: silence,
		StarvedWait: 640 * time.Microsecond, // IBTA
		MaxInline:   128,                    // B, 3
		MaxReads:    4,                      // mthca
		Link:        750e6,                  // E, ping-pong table: about what the link comes to
		Connect:     200 * time.Microsecond, // typical
		Burst:       16 << 10,
		// E, 1: a trap and a cost linear in pages, not printed; as with pcie-2005.
		Register: 68 * time.Microsecond, RegisterPage: 200 * time.Nanosecond,
		Deregister: 34 * time.Microsecond, DeregisterPage: 100 * time.Nanosecond, // typical: half
		Copy:      30 * time.Nanosecond,                                   // typical
		CopyRates: []CopyRate{{8 << 10, 6e9}, {1 << 20, 4e9}, {0, 1.5e9}}, // typical
	},
	{
		Name: "ndr-2024", Hardware: "ConnectX-7 NDR 400 Gb/s, 16x PCI Express 5",

		// 1.0 us for a small message, half of what Kentino has for there and back.
		Post:  50 * time.Nanosecond,  // typical
		Fetch: 350 * time.Nanosecond, // split; 250 ns of it cross the bus, Hoefler
		Wire:  250 * time.Nanosecond, // typical
		Place: 350 * time.Nanosecond, // split
		// As with pcie-2005.
		TurnRead: 350 * time.Nanosecond, Return: 350 * time.Nanosecond,
		TurnAtomic:  400 * time.Nanosecond, // typical
		Acknowledge: 200 * time.Nanosecond, // typical
		FetchInline: 100 * time.Nanosecond, // a crossing of the bus less, Hoefler
		Gap:         5 * time.Nanosecond,   // Hoefler, of ConnectX-5
		GapSegment:  5 * time.Nanosecond,   // typical
		PostSegment: 5 * time.Nanosecond,   // typical
		PostReceive: 30 * time.Nanosecond,  // typical
		Receive:     100 * time.Nanosecond, // typical
		Poll:        10 * time.Nanosecond,  // typical
		Complete:    20 * time.Nanosecond,  // typical
		PollRing:    4 * time.Nanosecond,   // typical
		InlineRate:  16e9,                  // typical
		RetryTime:   retryTime, Notice: notice, Silence: silence,
		StarvedWait: 640 * time.Microsecond, // IBTA
		MaxInline:   220,                    // typical
		MaxReads:    16,                     // mlx4, and cards since
		Link:        49e9,                   // 400 Gb/s less headers, typical
		Bus:         56e9,                   // 16 lanes of 32 GT/s less headers, each direction; typical
		Connect:     100 * time.Microsecond, // typical
		Burst:       64 << 10,
		Register:    30 * time.Microsecond, RegisterPage: 50 * time.Nanosecond, // typical
		Deregister: 15 * time.Microsecond, DeregisterPage: 25 * time.Nanosecond, // typical
		Copy:      10 * time.Nanosecond,                                     // typical
		CopyRates: []CopyRate{{32 << 10, 60e9}, {1 << 20, 30e9}, {0, 12e9}}, // typical
	},
}

const (
	// retryTime is that of a timeout of 14 and 7 retries, which are what perftest has:
	// eight times 4.096 us 2^14 (IBTA, local ACK timeout).
	retryTime = 8 * 4096 << 14 * time.Nanosecond
	// notice is until the system has ended a process and closed its connections; typical.
	notice = time.Millisecond
	// silence is that after which a connection is taken for dead.
	silence = 10 * time.Second
)

// Profiles are the names that ByName knows.
func Profiles() []string {
	names := []string{Ideal().Name}
	for i := range profiles {
		names = append(names, profiles[i].Name)
	}
	return names
}

// ByName gives a profile, which the caller may change.
func ByName(name string) (Profile, error) {
	if ideal := Ideal(); name == ideal.Name {
		return ideal, nil
	}
	for _, p := range profiles {
		if p.Name == name {
			p.CopyRates = slices.Clone(p.CopyRates)
			return p, nil
		}
	}
	return Profile{}, fmt.Errorf("sim: no profile %q; allowed are %s", name, strings.Join(Profiles(), ", "))
}

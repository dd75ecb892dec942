package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The sources of the constants. Letters are the papers that this library reproduces: A scheduling of one-sided
// operations, B frequently used buffers, C superpipeline, D RDMA channel, E RDMA pipeline. The others are:
//
//	Liu04      J. Liu et al., Performance evaluation of InfiniBand with PCI Express,
//	           Hot Interconnects 2004, abstract: 3.8 us and 5.0 us for a small message with
//	           PCI Express and PCI-X; 1486 and 2729 MB/s, one direction and both, where both
//	           ports of a card share 8x PCI Express
//	Squyres    J. Squyres, Open MPI developers' list, 2007: "around 1.4us" between two
//	           processes of MPI implementations that keep headers short, on ConnectX
//	mthca      Linux, drivers/infiniband/hw/mthca/mthca_main.c, MTHCA_DEFAULT_RDB_PER_QP
//	mlx4       Linux, drivers/net/ethernet/mellanox/mlx4/main.c, default_profile.rdmarc_per_qp
//	IBTA       InfiniBand Architecture Specification, RNR NAK timer of code 12, which Linux
//	           has as IB_RNR_TIMER_000_64 and perftest as MIN_RNR_TIMER
//	IA-32      Intel, IA-32 Architecture Optimization, table 1-1: caches of Xeons with
//	           CPUID model 2 (8 KB, 512 KB) and models 3 and 4, EM64T (16 KB, 1 MB)
//	AnandTech  articles 1621 and 2978, measured clocks of a load from the first and second
//	           cache: Northwood 2 and 16, Prescott 4 and 23, Xeon X5570 4 and 9
//	Hoefler    T. Hoefler et al., sPIN, slides: what a message and a bus crossing take
//	Register   The Register, 6 June 2011: ConnectX-2, a port of 10 Gb/s Ethernet with RoCE
//	Community  Mellanox community, on PCI Express and QDR: 40 Gb/s less twice 8b/10b are
//	           25.6 Gb/s, of which boards reach close to 25
//	Kentino    kentino.com, "Latency dissection": one switch, NDR, 64 bytes there and back
//
// No source has the values marked "split": they are a sum from a source less its known shares, in equal parts for the
// two cards. Values marked "typical" have the right size for hardware of that time and are in no sum of a source.
//
// PollRing is derived, because the time to poll many rings is a figure that the library is to reproduce. A ring's first
// line is in the second cache. So PollRing is a load of the ring's address (first cache), a load of its head flag
// (second cache), and one clock each to compare, branch and step, at the processor's clock rate.
//
// The caches' shares of CopyRates are halves: source and destination share a cache.
//
// Burst is not a figure of a card: the throughput of links and buses does not depend on it.
//
// No value is taken from a figure that the library is to reproduce, with two exceptions that are marked. D has send and
// receive only as the difference to its channel. B has the copy rate of its machine only in the number of uses for
// which a registration pays.
var profiles = []Profile{
	{
		Name: "pcie-2005", Hardware: "InfiniHost III Ex MT25208, 8x PCI Express, Xeon EM64T 3.4 GHz (A, 5.1)",

		// 3.8 us for a small message, Liu04: 0.3 + 1.6 + 0.3 + 1.6.
		Post:  300 * time.Nanosecond,  // typical
		Fetch: 1600 * time.Nanosecond, // split
		Wire:  300 * time.Nanosecond,  // typical
		Place: 1600 * time.Nanosecond, // split
		// The responder reads its memory as the sender of a write does, and the requester places the data as the
		// receiver of one.
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
		PollRing:    9 * time.Nanosecond,    // AnandTech: (4+23+3) clocks of 3.4 GHz
		InlineRate:  2e9,                    // typical
		RetryTime:   retryTime, Notice: notice, Silence: silence,
		StarvedWait: 640 * time.Microsecond,  // IBTA
		MaxInline:   128,                     // B, 3: what the card's inline size serves
		MaxReads:    4,                       // mthca
		Link:        964e6,                   // A, 4.1.1: one direction
		Bus:         1905e6, BusShared: true, // A, 4.1.1: both directions
		Connect: 200 * time.Microsecond, // typical
		Burst:   16 << 10,
		// C, 2, has about 68 us and 0.2 us per page for other boards.
		Register: 68 * time.Microsecond, RegisterPage: 200 * time.Nanosecond,
		Deregister: 34 * time.Microsecond, DeregisterPage: 100 * time.Nanosecond, // typical: half
		Copy:      30 * time.Nanosecond,                                     // typical
		CopyRates: []CopyRate{{8 << 10, 6e9}, {512 << 10, 4e9}, {0, 1.5e9}}, // sizes IA-32, rates typical
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
		PollRing:    7 * time.Nanosecond,    // AnandTech: (2+16+3) clocks of 3.0 GHz
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
		CopyRates: []CopyRate{{4 << 10, 5e9}, {256 << 10, 3e9}, {0, 1.2e9}}, // sizes IA-32, rates typical
	},
	{
		Name: "connectx-ddr-2009", Hardware: "ConnectX DDR, 8x PCI Express 1, Xeon EM64T 2.8 GHz (B, 4)",

		// 1.4 us for a small message, Squyres; B only plots it. MPI's share is not known and stays included: 0.15 + 0.5
		// + 0.25 + 0.5.
		Post:  150 * time.Nanosecond, // typical
		Fetch: 500 * time.Nanosecond, // split
		Wire:  250 * time.Nanosecond, // typical
		Place: 500 * time.Nanosecond, // split
		// As with pcie-2005.
		TurnRead: 500 * time.Nanosecond, Return: 500 * time.Nanosecond,
		TurnAtomic:  750 * time.Nanosecond, // typical
		Acknowledge: 300 * time.Nanosecond, // typical
		FetchInline: 350 * time.Nanosecond, // typical
		Gap:         150 * time.Nanosecond, // typical
		GapSegment:  50 * time.Nanosecond,  // typical
		PostSegment: 20 * time.Nanosecond,  // typical
		PostReceive: 120 * time.Nanosecond, // typical
		Receive:     250 * time.Nanosecond, // typical
		Poll:        40 * time.Nanosecond,  // typical
		Complete:    80 * time.Nanosecond,  // typical
		PollRing:    11 * time.Nanosecond,  // AnandTech: (4+23+3) clocks of 2.8 GHz
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
		CopyRates: []CopyRate{{8 << 10, 2.5e9}, {1 << 20, 2.5e9}, {0, 1.5e9}}, // B, minimum n, with C's registration: 2 to 3 GB/s in cache; from memory typical
	},
	{
		Name: "graphene-ddr", Hardware: "ConnectX DDR MT26418, Xeon X3440 (C, 2)",

		// 1.2 us for a small message: in C, 3.3, C0 = Bcopy * 2 lambda is 8 to 16 KB where Bcopy is 5 GB/s.
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
		PollRing:    6 * time.Nanosecond,   // AnandTech: (4+9+3) clocks of 2.53 GHz
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
		CopyRates: []CopyRate{{16 << 10, 10e9}, {4 << 20, 7e9}, {0, 5e9}}, // C, figure 1: 5 GB/s from memory, higher in cache; caches and their rates typical
	},
	{
		Name: "infini-qdr", Hardware: "ConnectX-2 QDR MT26428, 8x PCI Express 2, Xeon X5570 (C, 2)",

		// 1.3 us for a small message, Register, for the same card as an Ethernet one.
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
		PollRing:    5 * time.Nanosecond,   // AnandTech: (4+9+3) clocks of 2.93 GHz
		InlineRate:  4e9,                   // typical
		RetryTime:   retryTime, Notice: notice, Silence: silence,
		StarvedWait: 640 * time.Microsecond, // IBTA
		MaxInline:   128,                    // B, 3
		MaxReads:    16,                     // mlx4
		Link:        3.2e9,                  // Community
		Connect:     200 * time.Microsecond, // typical
		Burst:       16 << 10,
		Register:    68 * time.Microsecond, RegisterPage: 200 * time.Nanosecond, // C, 2: the same order on QDR boards
		Deregister: 34 * time.Microsecond, DeregisterPage: 100 * time.Nanosecond, // typical: half
		Copy:      20 * time.Nanosecond,                                   // typical
		CopyRates: []CopyRate{{16 << 10, 12e9}, {4 << 20, 8e9}, {0, 5e9}}, // typical
	},
	{
		Name: "infinihost-2003", Hardware: "InfiniHost MT23108, PCI-X 64 bit 133 MHz, Xeon 2.4 GHz (D, 6.1)",

		// D, 6.2: 6.8 us for a message of MPI over writes. MPI's share is not known: 0.8 us, typical, leaves 6.0 us:
		// 0.4 + 2.65 + 0.3 + 2.65.
		Post:  400 * time.Nanosecond,  // typical
		Fetch: 2650 * time.Nanosecond, // split
		Wire:  300 * time.Nanosecond,  // typical
		Place: 2650 * time.Nanosecond, // split
		// The exception: D, 6.3: send and receive take more than 2 us more, 24 % of 8.9 us. So a comparison of both by
		// a ping-pong shows only what was put in. Of these 2.1 us, 0.4 us go to PostReceive, 1.3 us to Receive, 0.4 us
		// to Poll and Complete: split.
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
		PollRing:    9 * time.Nanosecond,    // AnandTech: (2+16+3) clocks of 2.4 GHz
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
		CopyRates: []CopyRate{{4 << 10, 4e9}, {256 << 10, 2e9}, {0, 800e6}}, // sizes D, 6.1, and IA-32, rates typical
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
		PollRing:    9 * time.Nanosecond,    // AnandTech: (4+23+3) clocks of 3.4 GHz
		InlineRate:  2e9,                    // typical
		RetryTime:   retryTime, Notice: notice, Silence: silence,
		StarvedWait: 640 * time.Microsecond, // IBTA
		MaxInline:   128,                    // B, 3
		MaxReads:    4,                      // mthca
		Link:        750e6,                  // E, ping-pong table: about what the link comes to
		Connect:     200 * time.Microsecond, // typical
		Burst:       16 << 10,
		// E, 1: a trap and a cost linear in pages, without values; as with pcie-2005.
		Register: 68 * time.Microsecond, RegisterPage: 200 * time.Nanosecond,
		Deregister: 34 * time.Microsecond, DeregisterPage: 100 * time.Nanosecond, // typical: half
		Copy:      30 * time.Nanosecond,                                     // typical
		CopyRates: []CopyRate{{8 << 10, 6e9}, {512 << 10, 4e9}, {0, 1.5e9}}, // sizes IA-32, rates typical
	},
	{
		Name: "ndr-2024", Hardware: "ConnectX-7 NDR 400 Gb/s, 16x PCI Express 5",

		// 1.0 us for a small message, half of Kentino's round trip.
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
		CopyRates: []CopyRate{{24 << 10, 60e9}, {1 << 20, 30e9}, {0, 12e9}}, // typical
	},
}

const (
	// retryTime is that of a timeout of 14 and 7 retries, as in perftest: eight times 4.096 us 2^14 (IBTA, local ACK
	// timeout).
	retryTime = 8 * 4096 << 14 * time.Nanosecond
	// notice is the time until the system has ended a process and closed its connections; typical.
	notice = time.Millisecond
	// silence is the default time after which verbs/tcp presumes a connection dead.
	silence = 10 * time.Second
)

// Profiles returns the names that ByName knows.
func Profiles() []string {
	names := []string{Ideal().Name}
	for i := range profiles {
		names = append(names, profiles[i].Name)
	}
	return names
}

// ByName returns the profile with a name, which the caller may change. It returns an error if there is none.
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

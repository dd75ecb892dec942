package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A Profile is the times and rates of a machine's card, bus, wire, processor and memory. Rates are in bytes per second;
// a rate of zero is unlimited. The package documentation has the equations.
type Profile struct {
	// Name is the name of the profile, Hardware the hardware that it models.
	Name, Hardware string

	// Post is the processor's time to post a send request, PostSegment for each further segment, PostReceive for a
	// receive. InlineRate is the rate at which it copies inline data.
	Post, PostSegment, PostReceive time.Duration
	InlineRate                     float64
	// Poll is the processor's time to poll a completion queue, Complete to take a completion from it, PollRing to poll
	// one ring in memory.
	Poll, Complete, PollRing time.Duration

	// Fetch is the card's time from a request's posting to its first byte on the wire. FetchInline is the same for a
	// request that carries its data. Both overlap those of other requests.
	Fetch, FetchInline time.Duration
	// Gap is how long a message occupies the output of the card beside its bytes, GapSegment how long each further
	// segment does.
	Gap, GapSegment time.Duration
	// Place is the card's time to place what has arrived, Receive its additional time to find the receive of a message.
	Place, Receive time.Duration
	// TurnRead and TurnAtomic are the responder's time from a request's arrival to the first byte of the response.
	TurnRead, TurnAtomic time.Duration
	// Acknowledge is the time from a request's placement to its completion at the requester, beside the wire. Return is
	// the same for the last byte of a response with data.
	Acknowledge, Return time.Duration
	// StarvedWait is how long a sender waits that found no receive.
	StarvedWait time.Duration
	// RetryTime is how long a requester retries an unanswered request before it gives up. Zero means for ever.
	RetryTime time.Duration
	// Notice is how long after a rank was killed Watch reports it, Silence how long after it has lost power.
	Notice, Silence time.Duration

	// MaxInline is the maximum number of bytes of an inline request, MaxReads the maximum number of outstanding reads
	// and atomics of a queue pair.
	MaxInline, MaxReads int
	// CoherentAtomics reports whether the card's atomics are atomic with respect to the processor's.
	CoherentAtomics bool
	// UnorderedWrites reports whether the card promises no order in which the bytes of a write are placed.
	UnorderedWrites bool

	// Link is the rate of the link in each direction. Bus is the rate of the I/O bus in each direction, or of both
	// together if BusShared.
	Link, Bus float64
	BusShared bool
	// Wire is the time of a bit through cables and switch.
	Wire time.Duration
	// Connect is the time that making a connection takes each side, beside the wire.
	Connect time.Duration
	// Burst is the number of bytes after which another queue pair's message has its turn. It is also the card's buffer
	// between link and bus. A smaller Burst means more events per message. The throughput of links and buses does not
	// depend on it (TestBurstDoesNotDecide).
	Burst int

	// Register and Deregister are for a region of one page, RegisterPage and DeregisterPage for each further page.
	Register, RegisterPage     time.Duration
	Deregister, DeregisterPage time.Duration
	// Copy is the processor's time to begin a copy. CopyRates are its rates by size, smallest first. The last has no
	// size.
	Copy      time.Duration
	CopyRates []CopyRate
}

// A CopyRate is the rate of copies of at most Size bytes.
type CopyRate struct {
	Size int
	Rate float64
}

// pageBytes is the page size of the simulated machines.
const pageBytes = 4096

// check returns the error of an invalid profile.
func (p *Profile) check() error {
	for what, d := range map[string]time.Duration{
		"Post": p.Post, "PostSegment": p.PostSegment, "PostReceive": p.PostReceive,
		"Poll": p.Poll, "Complete": p.Complete, "PollRing": p.PollRing, "Fetch": p.Fetch, "FetchInline": p.FetchInline,
		"Gap": p.Gap, "GapSegment": p.GapSegment, "Place": p.Place, "Receive": p.Receive,
		"TurnRead": p.TurnRead, "TurnAtomic": p.TurnAtomic, "Acknowledge": p.Acknowledge, "Return": p.Return,
		"StarvedWait": p.StarvedWait, "Wire": p.Wire, "Connect": p.Connect, "Copy": p.Copy,
		"Register": p.Register, "RegisterPage": p.RegisterPage, "Deregister": p.Deregister, "DeregisterPage": p.DeregisterPage,
	} {
		if d < 0 || d > time.Second {
			return argumentError("profile %s: %s of %v; allowed is 0 to 1s", p.Name, what, d)
		}
	}
	for what, d := range map[string]time.Duration{"RetryTime": p.RetryTime, "Notice": p.Notice, "Silence": p.Silence} {
		if d < 0 || d > time.Hour {
			return argumentError("profile %s: %s of %v; allowed is 0 to 1h", p.Name, what, d)
		}
	}
	rates := map[string]float64{"Link": p.Link, "Bus": p.Bus, "InlineRate": p.InlineRate}
	for i, c := range p.CopyRates {
		rates[fmt.Sprintf("CopyRates[%d]", i)] = c.Rate
		if last := i == len(p.CopyRates)-1; !last && c.Size < 1 || last && c.Size != 0 || !last && i > 0 && c.Size <= p.CopyRates[i-1].Size {
			return argumentError("profile %s: CopyRates[%d] for %s; sizes grow, and the last is 0", p.Name, i, errtext.Count(c.Size, "byte"))
		}
	}
	for what, rate := range rates {
		if !(rate == 0 || rate >= 1e3) || math.IsInf(rate, 0) {
			return argumentError("profile %s: %s of %v bytes a second; allowed is 1000 and more, or 0 for no limit", p.Name, what, rate)
		}
	}
	if p.MaxInline < 0 || p.MaxInline > 1<<16 || p.MaxReads < 1 || p.Burst < 256 {
		return argumentError("profile %s: MaxInline %d, MaxReads %d, Burst %d; allowed are 0 to 65536, 1 and more, 256 and more", p.Name, p.MaxInline, p.MaxReads, p.Burst)
	}
	return nil
}

// takes returns how long n bytes take at a rate. The conversion keeps the product from being fused with the sum, so
// that the time is the same on every machine.
func takes(n int, rate float64) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(float64(float64(n)/rate*1e9) + 0.5)
}

// pages returns the number of pages of n bytes beyond the first.
func pages(n int) time.Duration { return time.Duration(max(n-1, 0) / pageBytes) }

// copying returns the time of a copy of n bytes.
func (p *Profile) copying(n int) time.Duration { return p.Copy + takes(n, p.copyRate(n)) }

func (p *Profile) copyRate(n int) float64 {
	for _, c := range p.CopyRates {
		if n <= c.Size || c.Size == 0 {
			return c.Rate
		}
	}
	return 0
}

// oneWay returns the time of an empty write from the processor that posts it to the memory of the peer.
func (p *Profile) oneWay() time.Duration { return p.Post + p.Fetch + p.Wire + p.Place }

// back returns the requester's time from the placement of its request to an acknowledgement without data.
func (p *Profile) back() time.Duration { return p.Wire + p.Acknowledge }

// starved returns the time after which a message that found no receive arrives again.
func (p *Profile) starved() time.Duration { return p.StarvedWait + 2*p.Wire }

// rate returns the rate of one direction while the other is idle. duplexRate returns that of both together.
func (p *Profile) rate() float64 {
	if p.Bus == 0 || p.Link != 0 && p.Link < p.Bus {
		return p.Link
	}
	return p.Bus
}

func (p *Profile) duplexRate() float64 {
	both := 2 * p.rate()
	if p.BusShared && p.Bus < both {
		return p.Bus
	}
	return both
}

// usualCopy is the size of copy for which Costs has the rate.
const usualCopy = 64 << 10

// costs returns the costs that result from the model.
func (p *Profile) costs() verbs.Costs {
	return verbs.Costs{
		Post: p.Post, Gap: p.Gap,
		Serve: p.PostReceive + p.Receive + p.Poll + p.Complete, PollRing: p.PollRing,
		Latency: p.oneWay(), ReadLatency: p.Post + p.Fetch + p.Wire + p.Place + p.TurnRead + p.Wire + p.Return,
		Bandwidth: p.rate(), DuplexBandwidth: p.duplexRate(),
		CopyLatency: p.Copy, CopyBandwidth: p.copyRate(usualCopy),
		Register: p.Register, RegisterPage: p.RegisterPage,
		Deregister: p.Deregister, DeregisterPage: p.DeregisterPage,
	}
}

// Ideal returns the profile of a card that takes no time.
func Ideal() Profile {
	return Profile{
		Name: "ideal", Hardware: "a card that takes no time", MaxInline: 256, MaxReads: 16, CoherentAtomics: true, Burst: 16 << 10,
		RetryTime: retryTime, Notice: notice, Silence: silence,
	}
}

package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/verbs"
)

// A Profile is what a machine's card, bus, wire, processor and memory take. Rates are in
// bytes a second; a rate of zero is without limit. doc.go has the equations.
type Profile struct {
	// Name of the profile, and the hardware that it stands for.
	Name, Hardware string

	// Post is the processor's time to post a send request, PostSegment for each further
	// segment, PostReceive for a receive, InlineRate how fast it copies inline data.
	Post, PostSegment, PostReceive time.Duration
	InlineRate                     float64
	// Poll is the processor's time to look at a completion queue, Complete to take a
	// completion from it, PollRing to look at one ring in memory.
	Poll, Complete, PollRing time.Duration

	// Fetch is the card's time from a request's posting to its first byte on the wire;
	// FetchInline when the request carries its data. Both overlap those of other requests.
	Fetch, FetchInline time.Duration
	// Gap and GapSegment are how long the way out of the card is taken by a message
	// beside its bytes, and by each further segment.
	Gap, GapSegment time.Duration
	// Place is the card's time to place what has arrived, Receive what it takes in
	// addition to find the receive of a message.
	Place, Receive time.Duration
	// TurnRead and TurnAtomic are the responder's time from a request's arrival to the
	// first byte of the answer.
	TurnRead, TurnAtomic time.Duration
	// Acknowledge is from a request's placement to its completion at the requester,
	// beside the wire; Return the same for the last byte of an answer with data.
	Acknowledge, Return time.Duration
	// StarvedWait is how long a sender waits that found no receive.
	StarvedWait time.Duration
	// RetryTime is how long a requester sends again what is not answered before it gives
	// up; zero is for ever.
	RetryTime time.Duration
	// Notice is how long after a rank was killed Watch tells of it, Silence how long after
	// it has lost power.
	Notice, Silence time.Duration

	// MaxInline is the most bytes of an inline request, MaxReads how many reads and
	// atomics of a queue pair can be under way.
	MaxInline, MaxReads int
	// CoherentAtomics tells that the card's atomics are atomic to the processor's.
	CoherentAtomics bool
	// UnorderedWrites tells that the card promises nothing of the order in which the bytes of a write
	// are placed.
	UnorderedWrites bool

	// Link is the rate of the link in each direction, Bus that of the I/O bus: in each
	// direction, or of both together if BusShared.
	Link, Bus float64
	BusShared bool
	// Wire is the time of a bit through cables and switch.
	Wire time.Duration
	// Connect is what making a connection takes each side, beside the wire.
	Connect time.Duration
	// Burst is how many bytes of a message go before another queue pair's, and for how many the
	// card has room between link and bus. The smaller, the more events a message takes; what
	// links and buses carry does not depend on it (TestBurstDoesNotDecide).
	Burst int

	// Register and Deregister are for a region of one page, RegisterPage and
	// DeregisterPage for each further page.
	Register, RegisterPage     time.Duration
	Deregister, DeregisterPage time.Duration
	// Copy is the processor's time to begin a copy, CopyRates how fast it is, by size,
	// smallest first. The last has no size.
	Copy      time.Duration
	CopyRates []CopyRate
}

// A CopyRate is how fast copies of up to Size bytes are.
type CopyRate struct {
	Size int
	Rate float64
}

// pageBytes is a page of the simulated machines.
const pageBytes = 4096

// check says what is wrong with a profile.
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

// takes is how long n bytes take at a rate. The conversion keeps the product from being
// fused with the sum, so that the time is the same on every machine.
func takes(n int, rate float64) time.Duration {
	if rate == 0 {
		return 0
	}
	return time.Duration(float64(float64(n)/rate*1e9) + 0.5)
}

// pages is how many pages n bytes have beyond the first.
func pages(n int) time.Duration { return time.Duration(max(n-1, 0) / pageBytes) }

// copying is what a copy of n bytes takes.
func (p *Profile) copying(n int) time.Duration { return p.Copy + takes(n, p.copyRate(n)) }

func (p *Profile) copyRate(n int) float64 {
	for _, c := range p.CopyRates {
		if n <= c.Size || c.Size == 0 {
			return c.Rate
		}
	}
	return 0
}

// oneWay is what an empty write takes from the processor that posts it to the memory of
// the peer.
func (p *Profile) oneWay() time.Duration { return p.Post + p.Fetch + p.Wire + p.Place }

// back is what the requester waits, from the placement of its request, for news of it
// that carries no data.
func (p *Profile) back() time.Duration { return p.Wire + p.Acknowledge }

// starved is how long after a message has found no receive it is there again.
func (p *Profile) starved() time.Duration { return p.StarvedWait + 2*p.Wire }

// Rate is that of one direction while the other is quiet, and DuplexRate of both together.
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

// usualCopy is the size of copy for which Costs gives the rate.
const usualCopy = 64 << 10

// costs are those that the model comes to.
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

// Ideal is a card that takes no time at all.
func Ideal() Profile {
	return Profile{
		Name: "ideal", Hardware: "a card that takes no time", MaxInline: 256, MaxReads: 16, CoherentAtomics: true, Burst: 16 << 10,
		RetryTime: retryTime, Notice: notice, Silence: silence,
	}
}

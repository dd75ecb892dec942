package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrFault is wrapped by errors that an injected fault causes at the rank whose card or processor has it. Its peers see
// what they would see of a real fault.
var ErrFault = errors.New("injected fault")

// FaultKind is the kind of a fault.
type FaultKind uint8

const (
	// Kill ends the process of Rank: its tasks (see [Device.Go]) and its device, without notice. Requests to it are not
	// answered any more: after Profile.RetryTime the oldest completes with verbs.StatusRetryExceeded and its queue pair
	// fails. Connections to it are rejected, and Watch reports its death after Profile.Notice.
	Kill FaultKind = iota
	// PowerLoss kills the processes of all Ranks and their machines at once. Connections to them get no response for
	// Profile.RetryTime, and Watch reports their death after Profile.Silence.
	PowerLoss
	// FailPair puts the oldest queue pair of Rank that is connected to Peer in verbs.StateError.
	FailPair
	// Delay delays what passes one direction of Rank's link by By.
	Delay
	// Stall blocks one direction of Rank's link. What is sent meanwhile waits. A request that is not answered within
	// Profile.RetryTime fails as one to a dead rank does.
	Stall
	// RejectMemory makes Rank's RegisterMemory return an error that wraps verbs.ErrMemory.
	RejectMemory
	// Overflow leaves no room in the completion queues that Rank has. A queue pair fails at its next completion, which
	// is its last and has verbs.StatusFlushed.
	Overflow
	// Starve makes the next Times messages that arrive for a receive of Rank find none, so that their senders try again
	// (Profile.StarvedWait).
	Starve
	// Exhaust makes the next message that arrives for a receive of Rank find none repeatedly, until its sender gives up
	// after 6 tries: verbs.StatusRetryExceeded.
	Exhaust
	// Slow makes Rank's processor take Factor times as long.
	Slow
	faultKinds
)

// The names of the kinds in text.
var faultNames = [faultKinds]string{"kill", "power-loss", "fail-pair", "delay", "stall", "reject-memory", "overflow", "starve", "exhaust", "slow"}

func (k FaultKind) String() string {
	if k < faultKinds {
		return faultNames[k]
	}
	return fmt.Sprintf("FaultKind(%d)", uint8(k))
}

// Direction is a direction of a rank's link.
type Direction uint8

const (
	// Out is what the rank sends, In what is sent to it.
	Out Direction = iota
	In
)

func (d Direction) String() string {
	if d == In {
		return "in"
	}
	return "out"
}

// A Fault is a failure for [Simulator.Inject]. Its kind determines which fields are used.
type Fault struct {
	Kind FaultKind
	// Event, if it is not zero, makes the fault happen right after the simulator's event of that number (see
	// [Simulator.Events]). Otherwise it happens at the time At.
	Event uint64
	At    time.Duration
	// Rank is the rank whose device, link or processor has the fault. PowerLoss uses Ranks instead.
	Rank  int
	Ranks []int
	// Peer is the other rank of FailPair.
	Peer int
	// Direction is the direction of Delay and Stall.
	Direction Direction
	// By is the delay of Delay, Factor the slow-down of Slow.
	By     time.Duration
	Factor int
	// For is how long Delay, Stall, RejectMemory and Slow last. Zero means for ever.
	For time.Duration
	// Times is the number of messages of Starve.
	Times int
}

// lasts reports whether a kind of fault has an end.
func (k FaultKind) lasts() bool {
	return k == Delay || k == Stall || k == RejectMemory || k == Slow
}

const (
	// maxFactor bounds the slow-down of a processor. maxTime bounds the duration of a fault, and its time.
	maxFactor = 1_000_000
	maxTime   = 24 * 365 * time.Hour
)

// check returns the error of an invalid fault.
func (f *Fault) check() error {
	wrong := func(format string, args ...any) error {
		return argumentError("fault %s: %s", f.Kind, fmt.Sprintf(format, args...))
	}
	switch {
	case f.Kind >= faultKinds:
		return wrong("no such kind; allowed are %s", strings.Join(faultNames[:], ", "))
	case f.At < 0 || f.At > maxTime:
		return wrong("at %v; allowed is 0 to %v", f.At, maxTime)
	case f.For < 0 || f.For > maxTime:
		return wrong("for %v; allowed is 0, which is for ever, to %v", f.For, maxTime)
	case f.Kind == PowerLoss && len(f.Ranks) == 0:
		return wrong("no ranks")
	case f.Direction > In:
		return wrong("direction %d; allowed are Out and In", f.Direction)
	case f.Kind == Delay && (f.By <= 0 || f.By > maxTime):
		return wrong("by %v; allowed is 1ns to %v", f.By, maxTime)
	case f.Kind == Slow && (f.Factor < 1 || f.Factor > maxFactor):
		return wrong("by %d; allowed is 1 to %d", f.Factor, maxFactor)
	case f.Kind == Starve && (f.Times < 1 || f.Times > maxFactor):
		return wrong("times %d; allowed is 1 to %d", f.Times, maxFactor)
	}
	for _, rank := range append([]int{f.Rank, f.Peer}, f.Ranks...) {
		if rank < 0 {
			return wrong("rank %d; they count from 0", rank)
		}
	}
	return nil
}

// String returns the fault as a line that ParseFaults reads.
func (f Fault) String() string {
	var text strings.Builder
	if f.Event > 0 {
		fmt.Fprintf(&text, "at event %d ", f.Event)
	} else {
		fmt.Fprintf(&text, "at %v ", f.At)
	}
	text.WriteString(f.Kind.String())
	if f.Kind == PowerLoss {
		text.WriteString(" rank ")
		for i, rank := range f.Ranks {
			if i > 0 {
				text.WriteByte(',')
			}
			fmt.Fprint(&text, rank)
		}
	} else {
		fmt.Fprintf(&text, " rank %d", f.Rank)
	}
	switch f.Kind {
	case FailPair:
		fmt.Fprintf(&text, " peer %d", f.Peer)
	case Delay:
		fmt.Fprintf(&text, " %s by %v", f.Direction, f.By)
	case Stall:
		fmt.Fprintf(&text, " %s", f.Direction)
	case Slow:
		fmt.Fprintf(&text, " by %d", f.Factor)
	case Starve:
		fmt.Fprintf(&text, " times %d", f.Times)
	}
	if f.Kind.lasts() && f.For > 0 {
		fmt.Fprintf(&text, " for %v", f.For)
	}
	return text.String()
}

// ranks returns the ranks at which the fault is reported.
func (f *Fault) ranks() []int {
	if f.Kind == PowerLoss {
		return f.Ranks
	}
	return []int{f.Rank}
}

// highest returns the highest rank that the fault names.
func (f *Fault) highest() int {
	switch f.Kind {
	case PowerLoss:
		return slices.Max(f.Ranks)
	case FailPair:
		return max(f.Rank, f.Peer)
	}
	return f.Rank
}

// Faults are a plan of faults, for [Simulator.Inject].
type Faults []Fault

// String returns a line for each fault, which ParseFaults reads.
func (f Faults) String() string {
	var text strings.Builder
	for i := range f {
		fmt.Fprintln(&text, f[i])
	}
	return text.String()
}

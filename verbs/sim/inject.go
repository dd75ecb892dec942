package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/onesided/rma/internal/errtext"
)

// Inject makes faults happen at their times, or now if that is past. It may be called at any time. Ranks are numbered
// in the order of Open; a rank without a device at the time of a fault is spared. If Inject returns an error, it has
// injected no fault.
func (s *Simulator) Inject(faults ...Fault) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range faults {
		if err := faults[i].check(); err != nil {
			return err
		}
	}
	if s.dying() {
		return nil
	}
	s.faulty = s.faulty || len(faults) > 0
	for i := range faults {
		f := new(Fault)
		*f = faults[i]
		f.Ranks = slices.Clone(f.Ranks)
		if s.highest == nil || f.highest() > s.highest.highest() {
			s.highest = f
		}
		if f.Event > 0 {
			s.counted = append(s.counted, f)
			slices.SortStableFunc(s.counted, func(a, b *Fault) int { return cmp.Compare(a.Event, b.Event) })
			s.nextCounted = s.counted[0].Event
			continue
		}
		if f.Kind == Slow || f.Kind == RejectMemory {
			s.addProcessorFault(f, max(f.At, s.now))
		}
		s.schedule(f.At, s.faultLane, evFault).what = f
	}
	return nil
}

// CheckJob returns an error if the simulator cannot run a job of its own with this number of ranks. One reason is cards
// that were opened before, which have the first numbers. The other is injected faults that name a rank that the job
// does not have.
func (s *Simulator) CheckJob(ranks int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.devices); n > 0 {
		return argumentError("the simulator has %s already; each job takes a new one", errtext.Count(n, "rank"))
	}
	if f := s.highest; f != nil && f.highest() >= ranks {
		return argumentError("fault %q names rank %d; the job has ranks 0 to %d", f, f.highest(), ranks-1)
	}
	return nil
}

// maxEvent is the number of an event that no run reaches.
const maxEvent = 1<<64 - 1

// strikeCounted makes the faults happen that wait for the number of the last event.
func (s *Simulator) strikeCounted() {
	for len(s.counted) > 0 && s.counted[0].Event <= s.taken {
		f := s.counted[0]
		s.counted = s.counted[1:]
		if f.Kind == Slow || f.Kind == RejectMemory {
			s.addProcessorFault(f, s.now)
		}
		s.strike(f)
	}
	s.nextCounted = maxEvent
	if len(s.counted) > 0 {
		s.nextCounted = s.counted[0].Event
	}
}

// strike makes a fault happen.
func (s *Simulator) strike(f *Fault) {
	s.reportFault(Struck, f)
	for _, rank := range f.ranks() {
		if rank < len(s.devices) {
			s.devices[rank].strike(f)
		}
	}
	if f.Kind.lasts() && f.For > 0 {
		s.schedule(s.now+f.For, s.faultLane, evHealed).what = f
	}
}

// strike makes a fault happen to a device.
func (d *Device) strike(f *Fault) {
	s := d.sim
	switch f.Kind {
	case Kill, PowerLoss:
		d.die(f.Kind == PowerLoss)
	case FailPair:
		for _, q := range d.pairs {
			if q.peer != nil && q.peer.device.rank == f.Peer && q.err == nil {
				q.fail(fmt.Errorf("sim: queue pair %d of rank %d: %w", q.number, d.rank, ErrFault))
				break
			}
		}
	case Delay, Stall:
		h := &d.faultsOut
		if f.Direction == In {
			h = &d.faultsIn
		}
		end := forever
		if f.For > 0 {
			end = s.now + f.For
		}
		if f.Kind == Delay {
			h.delays = slices.DeleteFunc(h.delays, func(d delay) bool { return d.end <= s.now })
			h.delays = append(h.delays, delay{f.By, end})
		} else {
			h.until = max(h.until, end)
		}
		for _, q := range d.pairs {
			q.guard()
			if q.peer != nil {
				q.peer.guard()
			}
		}
	case Overflow:
		for _, q := range d.queues {
			q.exhausted = true
		}
	case Starve:
		d.starving += f.Times
	case Exhaust:
		d.exhausting++
	}
}

// A period is the time in which a rank's processor is slow by a factor, or rejects memory.
type period struct {
	from, until time.Duration
	factor      int
}

// addProcessorFault adds a fault that a rank's processor has from a time on. The time is by the clocks of the rank's
// tasks, which are ahead of the simulator's. For a fault known in advance they are as exact as for what the card does.
func (s *Simulator) addProcessorFault(f *Fault, from time.Duration) {
	a := processorFault{fault: f, period: period{from: from, until: forever, factor: max(f.Factor, 1)}}
	if f.For > 0 {
		a.until = from + f.For
	}
	s.processorFaults = append(s.processorFaults, a)
	if f.Rank < len(s.devices) {
		s.devices[f.Rank].addProcessorFault(&a)
	}
}

// A processorFault is a fault of a rank's processor, and its period.
type processorFault struct {
	fault *Fault
	period
}

func (d *Device) addProcessorFault(a *processorFault) {
	if a.fault.Kind == Slow {
		d.slow = append(d.slow, a.period)
	} else {
		d.refusals = append(d.refusals, a.period)
	}
}

// inheritFaults gives a new device the faults of its rank.
func (d *Device) inheritFaults() {
	for i := range d.sim.processorFaults {
		if a := &d.sim.processorFaults[i]; a.fault.Rank == d.rank {
			d.addProcessorFault(a)
		}
	}
}

// under returns the largest factor of the periods at a time, or zero if there is none.
func under(periods []period, at time.Duration) (factor int) {
	for i := range periods {
		if s := &periods[i]; s.from <= at && at < s.until {
			factor = max(factor, s.factor)
		}
	}
	return factor
}

// takes returns how long the processor needs for work that it begins at a time.
func (d *Device) takes(at, work time.Duration) time.Duration {
	if !d.sim.faulty || len(d.slow) == 0 {
		return work
	}
	for begun := at; ; {
		factor := time.Duration(max(under(d.slow, at), 1))
		change := forever
		for i := range d.slow {
			for _, t := range []time.Duration{d.slow[i].from, d.slow[i].until} {
				if t > at {
					change = min(change, t)
				}
			}
		}
		if work <= (change-at)/factor {
			return at + work*factor - begun
		}
		if change == forever {
			return max(forever/2-begun, 0)
		}
		work -= (change - at) / factor
		at = change
	}
}

// Takes returns how long the rank's processor needs for work that the caller begins now: what Compute would charge.
// work is its duration without a slow-down.
func (d *Device) Takes(work time.Duration) time.Duration {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	return d.takes(*d.sim.local(), max(work, 0))
}

// spend charges CPU time of the caller on this rank's processor. The caller's clock runs ahead of the simulator's until
// it is settled.
func (d *Device) spend(work time.Duration) {
	local := d.sim.local()
	*local += d.takes(*local, work)
}

// charge is spend, and reports what the time was for.
func (d *Device) charge(k EventKind, work time.Duration, bytes int) {
	begun := *d.sim.local()
	d.spend(work)
	d.reportTask(k, begun, *d.sim.local(), bytes)
}

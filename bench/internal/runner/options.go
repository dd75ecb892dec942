package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/toggles"
	"github.com/onesided/rma/verbs/sim"
)

// Options say how the cells of a job are measured.
type Options struct {
	Device string
	// DeviceGiven is set if Device is not the default.
	DeviceGiven bool
	// Card is the profile of a simulated device, or nil. Seed is the simulator's.
	Card *sim.Profile
	Seed uint64
	// Rails is the number of cards of a simulated rank.
	Rails int
	// Trace is the file for the events of simulated cards or of ranks over a network, or "".
	Trace  string
	Repeat int
	// Shorten divides the iterations of loops and the times of cases. 0 and 1 change nothing.
	Shorten int
	Timeout time.Duration
	Profile string
	Allocs  bool
	// Percentiles is set if percentiles of latencies are requested.
	Percentiles bool
	Settings    toggles.Settings

	// Measure measures cells on a rank, in place of Repeat loops of each. It is nil for those. Ranks that are processes
	// have it by their command line: Words are its first, and Arguments take the place of -repeat.
	Measure          func(ctx context.Context, s *Rank, cells []cases.Cell) error
	Words, Arguments []string
	// Refuses returns an error if ranks of a launcher that use a device cannot measure. It may be nil.
	Refuses func(device string) error
}

// Machine returns what o's measurements depend on.
func (o *Options) Machine() fmt.Stringer {
	if o.Card != nil {
		return device.Simulation{Card: o.Card, Seed: o.Seed}
	}
	return machine.This()
}

// Linked reports whether ranks reach each other over links of a network, real or simulated.
func (o *Options) Linked() bool {
	return o.Device == device.TCP || o.Device == device.IBV || o.Card != nil
}

// Check rejects values that no run can have. given has the names of the flags on the command line. ranks is 0 if -n is
// not among them.
func (o *Options) Check(given map[string]bool, ranks int) error {
	if err := o.CheckLoops(given, ranks); err != nil {
		return err
	}
	if err := o.CheckTimeout(); err != nil {
		return err
	}
	if err := o.CheckSettings(); err != nil {
		return err
	}
	return o.CheckDevice(given)
}

// CheckLoops rejects a device that does not exist, and numbers that no run can have.
func (o *Options) CheckLoops(given map[string]bool, ranks int) error {
	switch {
	case given["n"] && (ranks < 1 || ranks > device.MaxRanks):
		return cli.Usagef("-n %d: allowed are 1 to %d ranks", ranks, device.MaxRanks)
	case o.Card == nil && !slices.Contains(device.Names, o.Device):
		return cli.Usagef("-device %q: allowed are %s", o.Device, strings.Join(device.Names, ", "))
	case o.Repeat < 1:
		return cli.Usagef("-repeat %d: at least 1", o.Repeat)
	case given["shorten"] && o.Shorten < 1:
		return cli.Usagef("-shorten %d: at least 1", o.Shorten)
	}
	return nil
}

// CheckTimeout rejects a time limit that no job can keep.
func (o *Options) CheckTimeout() error {
	if o.Timeout <= 0 {
		return cli.Usagef("-timeout %v: more than 0", o.Timeout)
	}
	return nil
}

// CheckSettings rejects switches that the device does not have.
func (o *Options) CheckSettings() error {
	switch {
	case o.Settings.NeedsTCP != "" && o.Device != device.TCP:
		return cli.Usagef("-set %s is of what goes over TCP: say -device %s too", o.Settings.NeedsTCP, device.TCP)
	case o.Settings.NeedsSharedMemory != "" && o.Device != device.Shm:
		return cli.Usagef("-set %s is of memory that processes share: say -device %s", o.Settings.NeedsSharedMemory, device.Shm)
	case o.Settings.NeedsLinks != "" && !o.Linked():
		return cli.Usagef("-set %s is of what goes over links: say -device %s, %s or %sPROFILE too", o.Settings.NeedsLinks, device.TCP, device.IBV, device.Sim)
	}
	return nil
}

// CheckDevice rejects flags that the device does not have.
func (o *Options) CheckDevice(given map[string]bool) error {
	switch {
	case given["seed"] && o.Card == nil:
		return cli.Usagef("-seed is for -device %sPROFILE", device.Sim)
	case given["rails"] && o.Card == nil:
		return cli.Usagef("-rails is for -device %sPROFILE; real ranks have as many as RMA_ADDRESS lists addresses, or RMA_IBV_DEVICE cards, with commas between them", device.Sim)
	case o.Rails < 1 || o.Rails > maxRails:
		return cli.Usagef("-rails %d: allowed are 1 to %d", o.Rails, maxRails)
	case o.Trace != "" && !o.Linked():
		return cli.Usagef("-trace is for -device %s, %s and %sPROFILE: loads and stores of mapped memory are not traced", device.TCP, device.IBV, device.Sim)
	}
	return nil
}

// maxRails is the greatest number of cards of a rank.
const maxRails = 8

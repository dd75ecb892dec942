package toggles

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Settings are the switches as the command line sets them.
type Settings struct {
	Given             []string // as given, for the measuring processes and for the header
	WindowOptions     []window.Option
	Tuning            tuning.Tuning
	joins             []world.Option
	oneElement        bool   // accumulates of more than one element are not possible
	oneOperation      bool   // accumulates of several operations are not possible
	Unregistered      bool   // buffers are not registered beforehand
	cardAtomics       bool   // only sums of integers can be accumulated
	ownDevices        bool   // a switch of the ranks' own devices and links; cases of messages do not use them
	NeedsTCP          string // a switch that needs ranks which use TCP
	NeedsSharedMemory string // a switch that needs processes which share memory
	NeedsLinks        string // a switch that needs ranks which use a network or simulated cards
	// Arranges is a switch of how windows arrange operations, all of which schemes sets itself.
	Arranges string
}

// JobOptions returns the options of the job.
func (s *Settings) JobOptions() []world.Option {
	return append(slices.Clone(s.joins), job.Tune(func(t *tuning.Tuning) { *t = s.Tuning }))
}

// Add sets the switch that text, of the form switch=value, names.
func (s *Settings) Add(text string) error {
	name, value, _ := strings.Cut(text, "=")
	all := All()
	i := slices.IndexFunc(all, func(t Toggle) bool { return t.Name == name })
	if i < 0 {
		var names []string
		for _, t := range all {
			names = append(names, t.Name)
		}
		return cli.Usagef("-set %s: there is no switch %q; there are %s", text, name, strings.Join(names, ", "))
	}
	if !slices.Contains(all[i].Values, value) {
		return cli.Usagef("-set %s: allowed are %s=%s", text, name, strings.Join(all[i].Values, ", "+name+"="))
	}
	if slices.ContainsFunc(s.Given, func(earlier string) bool { return strings.HasPrefix(earlier, name+"=") }) {
		return cli.Usagef("-set %s: switch %s is given twice", text, name)
	}
	s.Given = append(s.Given, text)
	if err := all[i].apply(s, value); err != nil {
		return cli.Usagef("-set %s: %v", text, err)
	}
	return nil
}

// Forbids says why a cell cannot be measured with the present switches. It returns "" if it can.
func (s *Settings) Forbids(one cases.Cell) string {
	if s.oneElement && one.Case.Name == "acc_flush_lat" && one.Size > 8 {
		return fmt.Sprintf("singleelement=on, and it accumulates %d elements", one.Size/8)
	}
	if s.cardAtomics {
		switch one.Case.Name {
		case "acc_flush_lat":
			return "cardatomics=on, and it accumulates floats"
		case "update_rate", "mixed_rate", "acc_target_cpu":
			return "cardatomics=on, and it accumulates by xor"
		}
	}
	if s.ownDevices && one.Case.Kind == cases.Messages {
		return strings.Join(s.Given, ", ") + ", and messages go over a device of their own"
	}
	if s.oneOperation && one.Case.Kind == cases.Tables {
		return "sameop=on, and a hash table needs several operations"
	}
	return ""
}

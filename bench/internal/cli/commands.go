package cli

// The names of the commands.
const (
	SchemesCommand  = "schemes"  // compares the schemes of an epoch
	SwitchesCommand = "switches" // shows the effect of switches
	KernelsCommand  = "kernels"  // measures whole jobs
	PaperCommand    = "paper"    // reproduces the papers' figures
	ScaleCommand    = "scale"    // shows how workloads grow with the number of ranks
	ReportCommand   = "report"   // draws what it measures
	GateCommand     = "gate"     // reports whether a change made cells slower
)

// IsCommand reports whether a word is the name of a command.
func IsCommand(name string) bool {
	switch name {
	case SchemesCommand, SwitchesCommand, KernelsCommand, PaperCommand, ScaleCommand, ReportCommand, GateCommand:
		return true
	}
	return false
}

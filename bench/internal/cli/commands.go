package cli

// The words of the commands.
const (
	Schemes  = "schemes"  // compares the schemes of an epoch
	Switches = "switches" // shows the effect of switches
	Kernels  = "kernels"  // measures whole jobs
	Paper    = "paper"    // reproduces the papers' figures
	Scale    = "scale"    // shows how workloads grow with the number of ranks
	Report   = "report"   // draws what it measures
	Gate     = "gate"     // reports whether a change made cells slower
)

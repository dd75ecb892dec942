package device

import (
	"os"
	"strings"
)

// Launched reports whether a launcher has started this process as a rank.
func Launched() bool {
	for _, name := range launcherVariables {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}

// launcherVariables are the variables by which world.Init finds the launcher.
var launcherVariables = []string{"PMI_FD", "PMI_PORT", "RMA_ROOT"}

// Variable forces the device of a job.
const Variable = "RMA_DEVICE"

// WithoutLauncher returns environment without the variables of a launcher and without a device.
func WithoutLauncher(environment []string) []string {
	var kept []string
	for _, variable := range environment {
		if !strings.HasPrefix(variable, "PMI_") && !strings.HasPrefix(variable, Variable+"=") {
			kept = append(kept, variable)
		}
	}
	return kept
}

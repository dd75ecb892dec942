package job

import (
	"fmt"
	"slices"
	"strings"
)

// variables are those of the environment that the library reads.
var variables = []string{
	"RMA_ADDRESS", "RMA_DEBUG", deviceVariable, "RMA_HOST", "RMA_STALL", "RMA_STATS", "RMA_TRACE",
	"RMA_KEY_FILE", "RMA_RANK", "RMA_ROOT", "RMA_SERVE_KEY_FILE", "RMA_SIZE", ranksVariable, simulateVariable,
	"RMA_IBV_DEVICE", "RMA_IBV_GID",
}

// checkSpelling refuses an environment with a variable that is one of the library's but for a letter: nothing reads it,
// and a program that goes on is not what its user thinks it is.
func checkSpelling(environment []string) error {
	for _, one := range environment {
		name, _, _ := strings.Cut(one, "=")
		if !strings.HasPrefix(name, "RMA_") || slices.Contains(variables, name) {
			continue
		}
		for _, known := range variables {
			if misspelt(name, known) {
				return fmt.Errorf("%w: nothing reads %s: is %s meant?", ErrEnvironment, name, known)
			}
		}
	}
	return nil
}

// misspelt tells whether two names differ, in a letter that is missing, too many or another, or in two that have changed
// places.
func misspelt(name, known string) bool {
	for name != "" && known != "" && name[0] == known[0] {
		name, known = name[1:], known[1:]
	}
	for name != "" && known != "" && name[len(name)-1] == known[len(known)-1] {
		name, known = name[:len(name)-1], known[:len(known)-1]
	}
	if len(name) == 2 && len(known) == 2 {
		return name[0] == known[1] && name[1] == known[0]
	}
	return name != known && len(name) <= 1 && len(known) <= 1
}

package world

import (
	"slices"
	"strings"
)

// variables are those of the environment that the library reads.
var variables = []string{
	"RMA_ADDRESS", "RMA_DEBUG", "RMA_DEVICE", "RMA_HOST", "RMA_STATS", "RMA_TRACE",
	"RMA_KEY_FILE", "RMA_RANK", "RMA_ROOT", "RMA_SIZE",
	"RMA_IBV_DEVICE", "RMA_IBV_GID",
}

// unread are the names of variables that look as if they were for the library, which reads none of them: misspelt ones.
func unread(environment []string) (names []string) {
	for _, one := range environment {
		if name, _, _ := strings.Cut(one, "="); strings.HasPrefix(name, "RMA_") && !slices.Contains(variables, name) {
			names = append(names, name)
		}
	}
	return names
}

// warnOfUnread tells the logger of variables that are misspelt, once in a job.
func (s *settings) warnOfUnread(rank int, environment []string) {
	if names := unread(environment); rank == 0 && len(names) > 0 {
		s.logger.Warn("variables of the environment that nothing reads", "names", strings.Join(names, " "), "known", strings.Join(variables, " "))
	}
}

package plan

import (
	"strconv"
	"strings"
)

// ParseResults finds the results of a job in the output of a peer's program, to which the launcher may have added
// lines.
func ParseResults(output string, j Job) []Result {
	var results []Result
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) != 4 {
			continue
		}
		size, err := strconv.Atoi(fields[1])
		value, err2 := strconv.ParseFloat(fields[2], 64)
		if err != nil || err2 != nil {
			continue
		}
		for _, one := range j.Cells {
			if one.Case.Name == fields[0] && one.Size == size && one.Case.Unit == fields[3] {
				results = append(results, Result{Case: fields[0], Size: size, Value: value, Unit: fields[3], Ranks: j.Ranks})
			}
		}
	}
	return results
}

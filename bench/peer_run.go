package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/onesided/rma/bench/internal/program"
)

// run measures the cells of one case. With an error it returns the results before it.
func (p *peer) run(ctx context.Context, j launch, o *options) ([]result, error) {
	name, args := p.arguments(j, o)
	output, err := program.Run(ctx, p.command(o.device, name, j.ranks, args...), p.environment(o.device), o.timeout, program.GracePeriod)
	results := parseResults(output, j)
	if err == nil && len(results) < len(j.cells) {
		err = program.ErrNoResult
	}
	return results, err
}

// parseResults finds the results of a job in the output of a peer's program, to which the launcher may have added
// lines.
func parseResults(output string, j launch) []result {
	var results []result
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
		for _, one := range j.cells {
			if one.Case.Name == fields[0] && one.Size == size && one.Case.Unit == fields[3] {
				results = append(results, result{Case: fields[0], Size: size, Value: value, Unit: fields[3], Ranks: j.ranks})
			}
		}
	}
	return results
}

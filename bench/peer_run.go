package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// errTimeout: a job took longer than -timeout.
var errTimeout = errors.New("not done in time")

// patience is how long after -timeout a launcher may take to notice that its
// ranks have ended themselves.
const patience = 10 * time.Second

// run measures the cells of one case. With an error it gives the results that came
// before it.
func (p *peer) run(ctx context.Context, j job, o *options) ([]result, error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout+patience)
	defer cancel()
	program, args := p.arguments(j, o)
	argv := p.command(o.device, program, j.ranks, args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = p.environment(o.device)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = patience
	endGently(cmd)
	start := time.Now()
	err := cmd.Run()
	results := parseResults(stdout.String(), j)
	switch {
	case err != nil && time.Since(start) >= o.timeout:
		return results, fmt.Errorf("%w: %v", errTimeout, o.timeout)
	case err != nil:
		return results, errors.New(reason(err, stdout.String()+"\n"+stderr.String()))
	case len(results) < len(j.cells):
		return results, errors.New("ended without a result")
	}
	return results, nil
}

// parseResults finds the results of a job in what a peer's program printed, in
// which the launcher may have written as well.
func parseResults(output string, j job) []result {
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
			if one.c.name == fields[0] && one.size == size && one.c.unit == fields[3] {
				results = append(results, result{Case: fields[0], Size: size, Value: value, Unit: fields[3], Ranks: j.ranks})
			}
		}
	}
	return results
}

// reason says why a launcher failed: how it ended, and the line of its output that
// tells most.
func reason(err error, output string) string {
	telling := ""
	for line := range strings.Lines(output) {
		line = strings.Trim(strings.TrimSpace(line), "=- ")
		if rest, ok := strings.CutPrefix(line, "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: "); ok {
			return rest
		}
		if _, rest, ok := strings.Cut(line, "exited on "); ok {
			return strings.TrimSuffix(rest, ".")
		}
		if line != "" {
			telling = line
		}
	}
	if telling == "" {
		return err.Error()
	}
	return err.Error() + ": " + telling
}

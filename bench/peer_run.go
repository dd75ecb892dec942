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

// errTimeout reports that a job took longer than -timeout.
var errTimeout = errors.New("not done in time")

// ofTimeout follows the time in a message of errTimeout if it is that of the flag.
const ofTimeout = " (-timeout)"

// errNoResult reports that a job has succeeded without printing its results.
var errNoResult = errors.New("ended without a result")

// patience is how long after -timeout a launcher may take to notice that its ranks have ended themselves.
const patience = 10 * time.Second

// run measures the cells of one case. With an error it returns the results before it.
func (p *peer) run(ctx context.Context, j launch, o *options) ([]result, error) {
	program, args := p.arguments(j, o)
	output, err := execute(ctx, p.command(o.device, program, j.ranks, args...), p.environment(o.device), o.timeout, patience)
	results := parseResults(output, j)
	if err == nil && len(results) < len(j.cells) {
		err = errNoResult
	}
	return results, err
}

// execute runs a launcher and returns its standard output. The launcher must end itself and the ranks within timeout.
// After grace more it is ended.
func execute(ctx context.Context, argv, env []string, timeout, grace time.Duration) (string, error) {
	// This time begins before that of the context, so a command that the context ends has used it up.
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout+grace)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = patience
	endGently(cmd)
	err := cmd.Run()
	switch {
	case err != nil && time.Since(start) >= timeout:
		err = fmt.Errorf("%w: %v", errTimeout, timeout)
	case err != nil:
		err = errors.New(reason(err, stdout.String()+"\n"+stderr.String()))
	}
	return stdout.String(), err
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
			if one.c.name == fields[0] && one.size == size && one.c.unit == fields[3] {
				results = append(results, result{Case: fields[0], Size: size, Value: value, Unit: fields[3], Ranks: j.ranks})
			}
		}
	}
	return results
}

// reason says why a launcher failed: how it ended, and the most informative line of its output.
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
		// Lines of rmarun count if the ranks wrote none, and the first of them the most.
		rest, added := strings.CutPrefix(line, "rmarun: ")
		added = added || strings.HasSuffix(line, " -h explains the usage")
		if line != "" && (!added || telling == "") {
			telling = rest
		}
	}
	if telling == "" {
		return err.Error()
	}
	return err.Error() + ": " + telling
}

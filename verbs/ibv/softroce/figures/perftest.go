package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/onesided/rma/verbs"
)

// perftest runs a program of perftest against itself on this host.
type perftest struct {
	card string
	gid  int
	// port is the port of the next run.
	port int
}

// The relevant columns of its output.
const (
	typicalColumn = 4 // of a latency, in us
	averageColumn = 3 // of a bandwidth, in MiB per second
	rateColumn    = 4 // in millions of messages per second
)

// connects is how often the client is started until the server listens.
const connects = 50

// run returns the result of a figure's program.
func (p *perftest) run(ctx context.Context, f *figure) (float64, error) {
	p.port++
	program := f.program
	arguments := append([]string{"-d", p.card, "-x", strconv.Itoa(p.gid), "-F", "-p", strconv.Itoa(p.port), "-n", strconv.Itoa(f.messages)}, f.options...)
	if f.opcode < verbs.OpFetchAdd {
		arguments = append(arguments, "-s", strconv.Itoa(f.bytes))
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := exec.CommandContext(ctx, program, arguments...)
	if err := server.Start(); err != nil {
		return 0, fmt.Errorf("figures: %w; perftest has to be installed", err)
	}
	var output []byte
	var err error
	for range connects {
		output, err = exec.CommandContext(ctx, program, append(arguments, "localhost")...).CombinedOutput()
		if err == nil || ctx.Err() != nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		stop()
		_ = server.Wait()
		return 0, fmt.Errorf("figures: %s: %w: %s", program, err, lastLine(output))
	}
	_ = server.Wait()
	return parse(string(output), f.kind.column())
}

// parse returns a column of the line after the headings.
func parse(output string, column int) (float64, error) {
	_, behind, ok := strings.Cut(output, "#bytes")
	lines := strings.Split(behind, "\n")
	if !ok || len(lines) < 2 {
		return 0, fmt.Errorf("figures: perftest's output has no table: %s", lastLine([]byte(output)))
	}
	fields := strings.Fields(lines[1])
	if len(fields) <= column {
		return 0, fmt.Errorf("figures: perftest's table has no column %d: %q", column, lines[1])
	}
	value, err := strconv.ParseFloat(fields[column], 64)
	if err != nil || value <= 0 {
		return 0, fmt.Errorf("figures: perftest's table has %q where a figure is to be", fields[column])
	}
	return value, nil
}

func lastLine(output []byte) string {
	lines := bytes.Split(bytes.TrimSpace(output), []byte("\n"))
	return string(lines[len(lines)-1])
}

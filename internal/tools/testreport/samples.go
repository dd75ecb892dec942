package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/onesided/rma/internal/interrupt"
)

// execMode is the argument by which go test uses this program to run test binaries.
const execMode = "exec"

// interval is the time between two samples.
const interval = 50 * time.Millisecond

// A sample is the processor time that a test binary and the processes that it started have used by a time.
type sample struct {
	at          time.Time
	own, others time.Duration
}

// execute runs a test binary and writes samples to a file in a directory. It returns the exit status.
func execute(arguments []string) int {
	if len(arguments) < 2 {
		fmt.Fprintln(os.Stderr, "testreport: exec needs a directory and a command")
		return 2
	}
	c := exec.Command(arguments[1], arguments[2:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	// The binary ends with the thread that starts it, so this thread must live as long as the process.
	runtime.LockOSThread()
	endWithParents(c)
	signals := make(chan os.Signal, 1)
	interrupt.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	if err := c.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		return 2
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	err := follow(c.Process, arguments[0], signals, ended)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "testreport:", err)
	return 2
}

// follow writes samples until the process has ended, and passes signals on to it.
func follow(process *os.Process, dir string, signals <-chan os.Signal, ended <-chan error) error {
	working, err := os.Getwd()
	if err != nil {
		working = ""
	}
	// Without the file the tests run nevertheless, without processor times.
	file, _ := os.CreateTemp(dir, "*.samples")
	if file != nil {
		defer file.Close()
		fmt.Fprintln(file, working)
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if own, others, ok := processorTime(process.Pid); ok && file != nil {
			fmt.Fprintln(file, time.Now().UnixNano(), int64(own), int64(others))
		}
		select {
		case err := <-ended:
			return err
		case s := <-signals:
			_ = process.Signal(s)
		case <-ticker.C:
		}
	}
}

// loadSamples reads the files of a directory, by package.
func loadSamples(dir string) (map[string][]sample, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.samples"))
	if err != nil || len(paths) == 0 {
		return nil, err
	}
	names, err := packages()
	if err != nil {
		return nil, err
	}
	all := make(map[string][]sample)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		working, samples := parseSamples(string(text))
		if name, ok := names[working]; ok {
			all[name] = samples
		}
	}
	return all, nil
}

// packages returns the import path of each package's directory.
func packages() (map[string]string, error) {
	output, err := exec.Command("go", "list", "-f", "{{.Dir}}\t{{.ImportPath}}", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	names := make(map[string]string)
	for line := range strings.Lines(string(output)) {
		dir, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		names[dir] = name
	}
	return names, nil
}

// parseSamples reads a file of samples. It ignores an incomplete last line.
func parseSamples(text string) (dir string, samples []sample) {
	lines := bufio.NewScanner(strings.NewReader(text))
	if !lines.Scan() {
		return "", nil
	}
	dir = lines.Text()
	for lines.Scan() {
		var nano, own, others int64
		if n, err := fmt.Sscanf(lines.Text(), "%d %d %d", &nano, &own, &others); n == 3 && err == nil {
			samples = append(samples, sample{time.Unix(0, nano), time.Duration(own), time.Duration(others)})
		}
	}
	return dir, samples
}

// at returns the processor times at a moment, interpolated between the samples around it.
func at(samples []sample, moment time.Time) sample {
	i, _ := slices.BinarySearchFunc(samples, moment, func(s sample, m time.Time) int { return s.at.Compare(m) })
	switch {
	case i == 0:
		return samples[0]
	case i == len(samples):
		return samples[len(samples)-1]
	}
	before, after := samples[i-1], samples[i]
	part := float64(moment.Sub(before.at)) / float64(after.at.Sub(before.at))
	between := func(a, b time.Duration) time.Duration { return a + time.Duration(part*float64(b-a)) }
	return sample{moment, between(before.own, after.own), between(before.others, after.others)}
}

package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/machine"
	"github.com/onesided/rma/bench/internal/table"
)

// Run is the run of report.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	if device.Launched() {
		return cli.Usagef("report starts ranks itself: run it without a launcher")
	}
	for _, d := range o.devices {
		if err := d.CheckCard(); err != nil {
			return err
		}
	}
	if err := writable(o.dir); err != nil {
		return err
	}
	r := newReport(o, cli.CommandLine(append([]string{cli.ReportCommand}, args...)))
	if o.peers {
		clean, err := r.findPeers(ctx)
		if err != nil {
			return err
		}
		defer clean()
	}
	if err := r.plan(stderr); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "bench: the report takes about %v on an idle machine%s\n", r.estimate().Round(5*time.Second), loadNote(machine.LoadAverage()))
	show, done := cli.Progress(stderr)
	measuring := r.measure(ctx, show)
	done()
	return r.finish(measuring, stdout)
}

// loadNote states the load average, if it is known.
func loadNote(average string) string {
	if average == "" {
		return ""
	}
	return "; the load average is " + average
}

// finish writes the results. Those before an error are written, too.
func (r *report) finish(measuring error, stdout io.Writer) error {
	if measuring != nil {
		r.Ended = measuring.Error()
	}
	if err := r.write(stdout); err != nil {
		return errors.Join(measuring, err)
	}
	if measuring != nil {
		return measuring
	}
	return r.ourFailures()
}

// writable makes dir. It returns an error if dir cannot be written to.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return cli.Usagef("-o %s: %v", dir, err)
	}
	probe, err := os.CreateTemp(dir, ".rma-bench-")
	if err != nil {
		return cli.Usagef("-o %s: nothing can be written there: %v", dir, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// write writes all files, and their names to stdout.
func (r *report) write(stdout io.Writer) error {
	for _, k := range r.kernels {
		k.Rows = compare.Judged(k.comparisons)
	}
	files := r.plots()
	pictures := len(files)
	files = append(files, file{name: "results.txt", text: r.benchmarks()}, file{name: "report.html", text: r.html(files)})
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(r.o.dir, f.name), []byte(f.text), 0o666); err != nil {
			return fmt.Errorf("bench: report: %w", err)
		}
	}
	_, err := fmt.Fprintf(stdout, "%s\n%s\n%s, %s\n", filepath.Join(r.o.dir, "report.html"), filepath.Join(r.o.dir, "results.txt"), filepath.Join(r.o.dir, "*.svg"), table.Plural(pictures, "plot"))
	return err
}

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/internal/interrupt"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

func main() {
	ctx, stop := interrupt.Context(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type options struct {
	rounds, gid int
	names       []string
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("figures", flag.ExitOnError)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: RMA_DEVICE=ibv rmarun -n 2 figures [flags] [case …]")
		flags.PrintDefaults()
		fmt.Fprintln(flags.Output(), "The cases, all of which are measured if none is named:")
		for _, f := range figures() {
			fmt.Fprintf(flags.Output(), "  %s: %s, of %d bytes each; against %s\n", f.name, f.about, f.bytes, strings.Join(append([]string{f.program}, f.options...), " "))
		}
	}
	flags.IntVar(&o.rounds, "rounds", 5, "how often everything is measured")
	flags.IntVar(&o.gid, "gid", 1, "the index of the GID that perftest is to use")
	_ = flags.Parse(args)
	o.names = flags.Args()
	if err := o.check(); err != nil {
		return err
	}
	w, err := world.Init(ctx)
	if err != nil {
		return err
	}
	if err = measure(ctx, w, &o); err != nil {
		return err
	}
	return w.Close()
}

func (o *options) check() error {
	if o.rounds < 1 {
		return fmt.Errorf("figures: -rounds %d: at least 1", o.rounds)
	}
	for _, name := range o.names {
		if !slices.ContainsFunc(figures(), func(f *figure) bool { return f.name == name }) {
			return fmt.Errorf("figures: there is no case %q; -h tells which there are", name)
		}
	}
	return nil
}

// measure measures as a rank.
func measure(ctx context.Context, w *world.World, o *options) error {
	device := job.Of(w).Device()
	card, ok := strings.CutPrefix(device.Attributes().Name, "ibv:")
	if !ok || w.Size() != 2 {
		return fmt.Errorf("figures: %d ranks use %s; have 2 use a card: RMA_DEVICE=ibv rmarun -n 2", w.Size(), device.Attributes().Name)
	}
	buffer, err := device.AllocateMemory(8 * words)
	if err != nil {
		return err
	}
	deregister, err := world.Register(w, wordsOf(buffer))
	if err != nil {
		return err
	}
	win, err := window.Allocate[int64](ctx, w, words)
	if err != nil {
		return err
	}
	counters, err := window.Allocate[int64](ctx, w, 1, window.CardAtomics())
	if err != nil {
		return err
	}
	if w.Rank() == 0 {
		if err := errors.Join(win.LockAll(ctx), counters.LockAll(ctx)); err != nil {
			return err
		}
		m := &measurement{win: win, counters: counters, buffer: wordsOf(buffer), peer: perftest{card: card, gid: o.gid, port: 18600}}
		if err := m.rounds(ctx, o); err != nil {
			return err
		}
		if err := errors.Join(win.UnlockAll(ctx), counters.UnlockAll(ctx)); err != nil {
			return err
		}
	}
	return errors.Join(win.Close(), counters.Close(), deregister(), device.FreeMemory(buffer))
}

// measurement is what rank 0 measures with.
type measurement struct {
	// counters has the words for the card's atomics.
	win, counters *window.Window[int64]
	buffer        []int64
	peer          perftest
	bare          *bare
	times         []time.Duration
}

func (m *measurement) rounds(ctx context.Context, o *options) (err error) {
	m.bare, err = newBare(1 << 20)
	defer func() {
		if closed := m.bare.close(); err == nil {
			err = closed
		}
	}()
	if err != nil {
		return err
	}
	var rows []*row
	for _, f := range figures() {
		if len(o.names) == 0 || slices.Contains(o.names, f.name) {
			rows = append(rows, &row{figure: f})
		}
	}
	for round := range o.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, o.rounds)
		for _, r := range rows {
			if err := m.round(ctx, r); err != nil {
				return fmt.Errorf("%v: %w", r.figure, err)
			}
		}
	}
	fmt.Print(table(rows))
	return nil
}

// round measures a figure once in each of the three ways.
func (m *measurement) round(ctx context.Context, r *row) error {
	f := r.figure
	theirs, err := m.peer.run(ctx, f)
	if err != nil {
		return err
	}
	win := m.win
	if f.byCard {
		win = m.counters
	}
	ours, err := m.loop(f, func() error { return f.turn(ctx, win, m.buffer) })
	if err != nil {
		return err
	}
	m.bare.ready(f)
	bare, err := m.loop(f, m.bare.turn)
	if err != nil {
		return err
	}
	if f.count > len(m.bare.requests) && f.kind == rate {
		bare *= float64(len(m.bare.requests)) / float64(f.count)
	}
	r.add(ours, bare, f.kind.in(theirs)*f.times)
	return nil
}

// loop runs turns, after some warm-up turns, and returns the value of the figure.
func (m *measurement) loop(f *figure, turn func() error) (float64, error) {
	for range f.turns/10 + 1 {
		if err := turn(); err != nil {
			return 0, err
		}
	}
	m.times = m.times[:0]
	begun := time.Now()
	last := begun
	for range f.turns {
		if err := turn(); err != nil {
			return 0, err
		}
		now := time.Now()
		m.times = append(m.times, now.Sub(last))
		last = now
	}
	took := last.Sub(begun).Seconds() / float64(f.turns)
	switch f.kind {
	case latency, single:
		slices.Sort(m.times)
		return float64(m.times[len(m.times)/2].Nanoseconds()) / 1e3, nil
	case bandwidth:
		return float64(f.bytes*f.count) / took / 1e6, nil
	}
	return float64(f.count) / took / 1e6, nil
}

// Command counters serves a window of counters from one process, and adds to the counters from others, which come and
// go at any time.
//
//	(umask 077; openssl rand -hex 32 > counters.key)
//	export RMA_SERVE_KEY_FILE=$PWD/counters.key
//	go run ./examples/counters -serve localhost:7001
//	go run ./examples/counters -at localhost:7001 3=40 5=1
//	go run ./examples/counters -at localhost:7001 3=2
//
// The last command prints "3 42". On a machine without other users, -nokey uses no key, at a loopback address.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/onesided/rma/internal/interrupt"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

func main() {
	ctx, _ := interrupt.Context(context.Background(), os.Interrupt, syscall.SIGTERM)
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

const usage = `usage: counters -serve HOST:PORT [-nokey] [-counters n] [-clients n]
       counters -at HOST:PORT [-nokey] INDEX=NUMBER...

Serves counters to other processes, until it is interrupted, or adds numbers to
counters of a process that does, and prints what they are then. A NUMBER may be
negative; INDEX=0 adds nothing and only reads the counter.
All need the same key, in a file that the environment names: RMA_SERVE_KEY_FILE.
Or all have -nokey, where HOST is a loopback address: every user of the machine
can then change the counters.

  (umask 077; openssl rand -hex 32 > counters.key)
  export RMA_SERVE_KEY_FILE=$PWD/counters.key
  go run ./examples/counters -serve localhost:7001
  go run ./examples/counters -at localhost:7001 3=40 5=1

flags:
`

var errUsage = errors.New("wrong usage")

func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("counters", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	serveAt := flags.String("serve", "", "serve at `host:port`; port 0 is any that is free")
	at := flags.String("at", "", "add to the counters that are served at `host:port`")
	keyless := flags.Bool("nokey", false, "do without a key, at a loopback address")
	counters := flags.Int("counters", 1024, "serve `n` counters, 1 or more")
	clients := flags.Int("clients", 64, fmt.Sprintf("serve at most `n` clients at once, 1 to %d", window.MaxSeats))
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stderr, usage)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		fmt.Fprint(stderr, "\nexit status: 0; 1 if something failed; 2 for wrong usage\n")
		return 0
	case err != nil:
		err = fmt.Errorf("%w: %w", errUsage, err)
	case *serveAt != "" && *at != "":
		err = fmt.Errorf("%w: -serve or -at, not both", errUsage)
	case *serveAt == "" && *at == "":
		err = fmt.Errorf("%w: either -serve or -at is needed", errUsage)
	case *serveAt != "" && flags.NArg() > 0:
		err = fmt.Errorf("%w: -serve takes no arguments", errUsage)
	case *counters < 1:
		err = fmt.Errorf("%w: -counters %d: must be 1 or more", errUsage, *counters)
	case *clients < 1 || *clients > window.MaxSeats:
		err = fmt.Errorf("%w: -clients %d: must be a number from 1 to %d", errUsage, *clients, window.MaxSeats)
	case *serveAt != "":
		err = serve(ctx, *serveAt, *counters, *clients, stdout, sessionOptions(*keyless, stderr)...)
	default:
		err = add(ctx, *at, flags.Args(), stdout, sessionOptions(*keyless, stderr)...)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "counters: %v\ncounters -h explains the usage\n", err)
		return 2
	}
	fmt.Fprintln(stderr, "counters:", err)
	return 1
}

// sessionOptions returns the options of both sides.
func sessionOptions(keyless bool, stderr io.Writer) []world.Option {
	options := []world.Option{world.WithLogger(slog.New(slog.NewTextHandler(stderr, nil)))}
	if keyless {
		options = append(options, world.WithoutKey())
	}
	return options
}

// serve serves counters until ctx ends.
func serve(ctx context.Context, address string, counters, clients int, stdout io.Writer, options ...world.Option) error {
	listener, err := world.Listen(ctx, address, options...)
	if err != nil {
		return err
	}
	defer listener.Close()
	return world.Run(context.WithoutCancel(ctx), 1, func(_ context.Context, w *world.World) error {
		win, err := window.Allocate[int64](context.WithoutCancel(ctx), w, counters, window.Seats(clients), window.SingleElement())
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "serving %d counters at %s\n", counters, listener.Addr())
		return errors.Join(window.Serve(ctx, listener, win.As("counters")), win.Close())
	})
}

// An addition is a number to add to a counter.
type addition struct {
	index  int
	number int64
}

func parse(args []string) (all []addition, err error) {
	if len(args) == 0 {
		return nil, fmt.Errorf("%w: no INDEX=NUMBER", errUsage)
	}
	for _, arg := range args {
		index, number, _ := strings.Cut(arg, "=")
		var a addition
		if a.index, err = strconv.Atoi(index); err == nil {
			a.number, err = strconv.ParseInt(number, 10, 64)
		}
		if err != nil || a.index < 0 {
			return nil, fmt.Errorf("%w: %q is no INDEX=NUMBER, of an index from 0 and a number from %d to %d", errUsage, arg, math.MinInt64, math.MaxInt64)
		}
		all = append(all, a)
	}
	return all, nil
}

// add adds to counters and prints their new values.
func add(ctx context.Context, address string, args []string, stdout io.Writer, options ...world.Option) (err error) {
	additions, err := parse(args)
	if err != nil {
		return err
	}
	session, err := world.Dial(ctx, address, options...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	win, err := window.Attach[int64](ctx, session, "counters")
	if err != nil {
		return err
	}
	// Nothing is added if one of the additions is not possible.
	for _, a := range additions {
		if a.index >= win.Len(0) {
			return fmt.Errorf("there is no counter %d: allowed are 0 to %d", a.index, win.Len(0)-1)
		}
	}
	if err := win.Lock(ctx, window.Shared, 0); err != nil {
		return err
	}
	// All additions leave together, with the Unlock.
	before := make([]int64, len(additions))
	for i, a := range additions {
		err = errors.Join(err, win.FetchAndOp(window.Sum, a.number, &before[i], 0, a.index))
	}
	if err = errors.Join(err, win.Unlock(ctx, 0)); err != nil {
		// The end of the session gives back the lock, too.
		return err
	}
	if err = win.Close(); err != nil {
		return err
	}
	for i, a := range additions {
		fmt.Fprintln(stdout, a.index, before[i]+a.number)
	}
	return nil
}

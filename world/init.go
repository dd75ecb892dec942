package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/world/pmi"
)

// DefaultPatience is how long Init waits for the other ranks to start.
const DefaultPatience = 60 * time.Second

// WithPatience sets how long Init waits for the other ranks to start.
func WithPatience(d time.Duration) Option { return func(s *settings) { s.patience = d } }

// Init joins the job that a process manager has started this process for: rmarun,
// or another that serves PMI-1. A process that nobody has started so is a world of
// one. All ranks must be processes of one user on one machine.
func Init(ctx context.Context, options ...Option) (*World, error) {
	if ctx == nil {
		return nil, fmt.Errorf("world: Init: %w: nil context", ErrArgument)
	}
	s := newSettings(options)
	client, err := pmi.FromEnvironment()
	if errors.Is(err, pmi.ErrNoManager) {
		if err := alone(); err != nil {
			return nil, err
		}
		worlds, err := fabricWorlds(1, s)
		if err != nil {
			return nil, err
		}
		return worlds[0], nil
	}
	if err != nil {
		return nil, fmt.Errorf("world: Init: %w: %w", ErrEnvironment, err)
	}
	w, err := join(ctx, client, s)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return w, nil
}

// alone checks that nobody takes this process for a rank: a job of many that each
// believe to be alone would go wrong without a word.
func alone() error {
	for _, name := range []string{"PMI_RANK", "PMI_SIZE", "PMI_ID"} {
		if value := os.Getenv(name); value != "" {
			return fmt.Errorf("world: Init: %w: %s=%q without a manager; a launcher sets PMI_FD, PMI_RANK and PMI_SIZE, or PMI_PORT and PMI_ID, and a process without one none of them", ErrEnvironment, name, value)
		}
	}
	return nil
}

func join(ctx context.Context, client *pmi.Client, s settings) (*World, error) {
	device, err := shm.Open(shm.Options{Ranks: client.Size()})
	if err != nil {
		return nil, fmt.Errorf("world: Init: %w", err)
	}
	roster := newRoster(client.Size())
	w, mine, err := newWorld(client.Rank(), client.Size(), runtime.NumCPU(), device, roster, s)
	if err != nil {
		return nil, errors.Join(err, device.Close())
	}
	w.yield = yieldToProcesses
	host := hostName()
	w.contact = func(_ context.Context, rank int) (contact, error) {
		text, err := client.Get(contactKey(rank))
		if err != nil {
			return contact{}, fmt.Errorf("world: rank %d: %w", rank, err)
		}
		return parseContact(rank, host, text)
	}
	w.finalize = client.Finalize
	w.end = roster.listen(func(int) { w.channel.Ring() })
	if err := w.meetAll(ctx, client, s.patience, contactText(host, mine)); err != nil {
		return nil, errors.Join(err, device.Close())
	}
	return w, nil
}

// meetAll tells everyone of this rank and starts to watch them.
func (w *World) meetAll(ctx context.Context, client *pmi.Client, patience time.Duration, mine string) error {
	if err := client.Put(contactKey(w.rank), mine); err != nil {
		return fmt.Errorf("world: Init: %w", err)
	}
	start, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not all of %d ranks started within %v", w.size, patience))
	defer cancel()
	if err := client.Barrier(start); err != nil {
		return fmt.Errorf("world: Init: %w", err)
	}
	watcher, ok := w.device.(verbs.Watcher)
	if !ok {
		return nil
	}
	for rank := range w.size {
		if rank == w.rank {
			continue
		}
		c, err := w.contactOf(rank)
		if err != nil {
			return err
		}
		if _, err := watcher.Watch(c.address, func(cause error) { w.roster.fail(rank, cause) }); err != nil {
			return fmt.Errorf("world: Init: watching rank %d: %w", rank, err)
		}
	}
	w.logger.Debug("joined", "rank", w.rank, "size", w.size, "device", w.device.Attributes().Name, "crowded", w.crowded)
	return nil
}

func contactKey(rank int) string { return fmt.Sprintf("rma-contact-%d", rank) }

// hostName names what processes must have in common to share memory: the running
// kernel and the name spaces of sockets and processes.
func hostName() string {
	parts := []string{runtime.GOOS}
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		parts = append(parts, strings.TrimSpace(string(boot)))
	}
	for _, space := range []string{"net", "pid"} {
		if id, err := os.Readlink("/proc/self/ns/" + space); err == nil {
			parts = append(parts, id)
		}
	}
	return strings.Join(parts, "/")
}

func contactText(host string, c contact) string {
	return fmt.Sprintf("%s;%s;%x;%x;%x", host, c.address, c.block.Address, c.block.Length, c.block.RKey)
}

func parseContact(rank int, host, text string) (contact, error) {
	fields := strings.Split(text, ";")
	if len(fields) != 5 {
		return contact{}, fmt.Errorf("world: contact %.80q of rank %d is malformed", text, rank)
	}
	if fields[0] != host {
		return contact{}, &verbs.CapabilityError{Device: "shm", Capability: fmt.Sprintf("reach rank %d", rank), Reason: fmt.Sprintf("it runs on %s, this rank on %s; all ranks must be on one machine, outside of different containers", fields[0], host)}
	}
	c := contact{address: fields[1]}
	for i, into := range []any{&c.block.Address, &c.block.Length, &c.block.RKey} {
		if _, err := fmt.Sscanf(fields[2+i], "%x", into); err != nil {
			return contact{}, fmt.Errorf("world: contact %.80q of rank %d: %w", text, rank, err)
		}
	}
	return c, nil
}

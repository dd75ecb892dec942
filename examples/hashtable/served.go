package hashtable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A table of one rank can be served. Clients, which are no ranks, attach to its window and do everything that a rank
// does. They have no announcements, because they have no memory that others read. In place of an announcement a
// client holds a shared lock of another window, the gate, during a Run. A process that is about to free pieces takes
// the lock exclusively once. It gets the lock when all Runs have ended that were in progress. The locks of clients
// that die are released.

// A gate is the window of that lock, as a rank or a client has it.
type gate struct {
	window *window.Window[uint64]
	// turn has an element while this process has the lock, or waits for it.
	turn chan struct{}
}

// graceTime is how long one attempt waits for the gate. A later call tries again.
const graceTime = 10 * time.Millisecond

func newGate(w *window.Window[uint64]) *gate { return &gate{w, make(chan struct{}, 1)} }

// lock takes the gate's lock.
func (g *gate) lock(ctx context.Context, kind window.LockKind) error {
	select {
	case g.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := g.window.LockNow(ctx, kind, 0)
	if err != nil {
		<-g.turn
	}
	return err
}

func (g *gate) unlock() error {
	err := throughShortage(func() error { return g.window.Unlock(context.Background(), 0) })
	<-g.turn
	return err
}

// grace reports whether all Runs of clients have ended that were in progress when it was called.
func (g *gate) grace(ctx context.Context) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, graceTime)
	defer cancel()
	err := g.lock(limited, window.Exclusive)
	switch {
	case err == nil:
		return true, g.unlock()
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return false, nil
	}
	return false, err
}

// Words of line 0 that tell clients the size of the table. They are adjacent.
const (
	bucketsWord     = 1
	recordWordsWord = 2
)

// openGate makes the gate of a table with clients, and writes the words of line 0 that they read.
func (t *Table) openGate(ctx context.Context, clients int) error {
	w, err := window.Allocate[uint64](ctx, t.world, 1, window.Seats(clients), window.Notifications(0))
	if err != nil {
		return err
	}
	t.gate = newGate(w)
	t.local[bucketsWord], t.local[recordWordsWord] = uint64(t.buckets), uint64(t.recordWords)
	return t.words.Sync()
}

// Suffixes of the names under which a table's windows are served.
const (
	wordsName = "/words"
	gateName  = "/gate"
)

// Windows returns the table's windows, for a window.Server. Clients attach to the table by name, as [Attach] does.
// The table must have been made with Config.Clients.
func (t *Table) Windows(name string) ([]window.Served, error) {
	if t.closed.Load() {
		return nil, ErrClosed
	}
	if t.gate == nil || t.isClient {
		return nil, fmt.Errorf("%w: only a table that this rank has made with Config.Clients is served", ErrConfig)
	}
	return []window.Served{t.words.As(name + wordsName), t.gate.window.As(name + gateName)}, nil
}

// Serve serves the table's windows under name to the clients of l, as window.Serve does. It serves until ctx ends or
// l is closed. The table must have been made with Config.Clients.
func (t *Table) Serve(ctx context.Context, l *world.Listener, name string) error {
	windows, err := t.Windows(name)
	if err != nil {
		return fmt.Errorf("hashtable: Serve: %w", err)
	}
	if err := window.Serve(ctx, l, windows...); err != nil {
		return fmt.Errorf("hashtable: Serve: %w", err)
	}
	return nil
}

// Attach returns the table that another process serves under name. w comes from world.Dial. The table has all methods
// of a table; this process owns no entries. Its Runs are carried out one after the other, so one large batch is
// faster than several goroutines. Close concerns this process only.
func Attach(ctx context.Context, w *world.World, name string) (*Table, error) {
	words, err := window.Attach[uint64](ctx, w, name+wordsName)
	if err != nil {
		return nil, fmt.Errorf("hashtable: Attach to table %q: %w", name, err)
	}
	t := &Table{world: w, words: words, isClient: true}
	if err := t.visit(ctx, name); err != nil {
		err = fmt.Errorf("hashtable: Attach: %w", err)
		if t.gate != nil {
			err = errors.Join(err, t.gate.window.Close())
		}
		return nil, errors.Join(err, words.Close())
	}
	return t, nil
}

// visit completes a client's table, whose window of words is attached.
func (t *Table) visit(ctx context.Context, name string) error {
	// The lock is taken before the table is read, so that it covers all reads.
	g, err := window.Attach[uint64](ctx, t.world, name+gateName)
	if err != nil {
		return err
	}
	t.gate = newGate(g)
	if err := t.words.LockAll(ctx, window.NoCheck); err != nil {
		return err
	}
	var sizes [2]uint64
	err = t.words.Get(sizes[:], 0, bucketsWord)
	if err == nil {
		err = t.words.Flush(ctx, 0)
	}
	if err != nil {
		return errors.Join(err, unlockAll(t.words))
	}
	buckets, recordWords := sizes[0], sizes[1]
	length := uint64(t.words.Len(0))
	if buckets < 1 || buckets > length || recordWords < 1 || recordWords > length ||
		headerWords+2*(lineWords+buckets*bucketSlots)+recordWords != length {
		err = fmt.Errorf("%w: %d buckets and %d record words in a window of %d words", ErrCorrupt, buckets, recordWords, length)
	} else {
		t.bytes, err = window.View[byte](t.words)
	}
	if err != nil {
		return errors.Join(err, unlockAll(t.words))
	}
	// Other ranks read the header of a rank, but nothing reads the header of a client.
	t.local = make([]uint64, headerWords)
	t.complete(int(buckets), int(recordWords), 1)
	return nil
}

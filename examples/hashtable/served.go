package hashtable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A table of one rank can be served: clients, which are no ranks, attach to its window, and do all that a
// rank does. They have no announcements, since they have no memory that others read. In their place they
// share the lock of another window, the gate, during a Run; who is about to set pieces free takes it for
// himself, once, which he has when all Runs have ended that were under way. It is given back for clients that die.

// A gate is that window, as a rank or a client has it.
type gate struct {
	window *window.Window[uint64]
	// turn has an element while this process has the lock, or waits for it.
	turn chan struct{}
}

// graceTime is how long the gate is waited for before it is tried again later.
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
	err := g.window.Unlock(context.Background(), 0)
	<-g.turn
	return err
}

// grace tells whether all Runs of clients have ended that were under way.
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

// The words of line 0 that tell clients of the table's size, side by side.
const (
	bucketsWord     = 1
	recordWordsWord = 2
)

// openGate makes the gate of a table that has clients, and writes what they have to know.
func (t *Table) openGate(ctx context.Context, clients int) error {
	w, err := window.Allocate[uint64](ctx, t.world, 1, window.Seats(clients), window.Notifications(0))
	if err != nil {
		return err
	}
	t.gate = newGate(w)
	t.local[bucketsWord], t.local[recordWordsWord] = uint64(t.buckets), uint64(t.recordWords)
	return t.words.Sync()
}

// The endings of the names under which a table's windows are served.
const (
	wordsName = "/words"
	gateName  = "/gate"
)

// Windows are those of the table, which was made with Config.Clients, for a window.Server: clients attach to the table by its
// name, as [Attach] does.
func (t *Table) Windows(name string) ([]window.Served, error) {
	if t.closed.Load() {
		return nil, ErrClosed
	}
	if t.gate == nil || t.visits {
		return nil, fmt.Errorf("%w: only a table that this rank has made with Config.Clients is served", ErrConfig)
	}
	return []window.Served{t.words.As(name + wordsName), t.gate.window.As(name + gateName)}, nil
}

// Serve serves the table to the clients of a Listener under a name, as window.Serve does its Windows: until ctx ends or the
// Listener is closed.
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

// Attach gives the table that another process serves under a name, in a World of world.Dial. It has everything
// that a table has, but that this process owns no entries. Its Runs go one after the other, so one
// large batch is better than several goroutines. Close is for this process alone. The options may leave out ways to arrange
// operations, as those of window.Attach.
func Attach(ctx context.Context, w *world.World, name string, options ...window.Option) (*Table, error) {
	words, err := window.Attach[uint64](ctx, w, name+wordsName, options...)
	if err != nil {
		return nil, fmt.Errorf("hashtable: Attach to table %q: %w", name, err)
	}
	t := &Table{world: w, words: words, visits: true}
	if err := t.visit(ctx, name); err != nil {
		err = fmt.Errorf("hashtable: Attach: %w", err)
		if t.gate != nil {
			err = errors.Join(err, t.gate.window.Close())
		}
		return nil, errors.Join(err, words.Close())
	}
	return t, nil
}

// visit completes a client's table, of which it has the window of words.
func (t *Table) visit(ctx context.Context, name string) error {
	// A lock that is taken later would not be held by who reads on.
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
		return errors.Join(err, t.words.UnlockAll(ctx))
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
		return errors.Join(err, t.words.UnlockAll(ctx))
	}
	// What others read of a rank's header nobody reads of a client's.
	t.local = make([]uint64, headerWords)
	t.complete(int(buckets), int(recordWords), 1)
	return nil
}

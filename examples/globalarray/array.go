package globalarray

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// An Array is this rank's handle of an array. It may be used by one goroutine at a time.
type Array[T window.Element] struct {
	// go vet reports a copy, which would share the window of the original.
	_ noCopy
	Map
	world *world.World
	win   *window.Window[T]
	// touched lists the ranks that have elements of the current operation. flushes has the requests that complete it
	// there, and shares has the values of each rank.
	touched []int
	flushes []window.Request
	shares  []share[T]
}

// noCopy makes go vet report copies: vet treats a type with Lock and Unlock as a lock.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// shape holds what all ranks must pass alike.
type shape struct {
	length, block int
	cyclic        bool
}

func (s *shape) String() string {
	return fmt.Sprintf("%d elements and %v", s.length, Distribution{s.cyclic, s.block})
}

// New makes an array of length elements, all zero. It is collective: if one rank fails, all do. The options are those
// of the array's window, and the same on every rank.
func New[T window.Element](ctx context.Context, w *world.World, length int, d Distribution, options ...window.Option) (*Array[T], error) {
	if err := checkContext(ctx, "New"); err != nil {
		return nil, err
	}
	if w == nil {
		return nil, fmt.Errorf("globalarray: New: %w: nil World", ErrArgument)
	}
	all := make([]shape, w.Size())
	if err := world.AllGather(ctx, w, []shape{{length, d.block, d.cyclic}}, all); err != nil {
		return nil, fmt.Errorf("globalarray: New: %w", err)
	}
	for rank, one := range all {
		if one != all[0] {
			return nil, fmt.Errorf("globalarray: New: %w: rank %d passed %v, rank 0 %v", ErrMismatch, rank, &one, &all[0])
		}
	}
	m, err := NewMap(length, w.Size(), d)
	if err != nil {
		return nil, err
	}
	win, err := window.Allocate[T](ctx, w, m.Count(w.Rank()), options...)
	if err != nil {
		return nil, fmt.Errorf("globalarray: New: %w", err)
	}
	if err := win.LockAll(ctx, window.NoCheck); err != nil {
		return nil, errors.Join(fmt.Errorf("globalarray: New: %w", err), win.Close())
	}
	a := &Array[T]{Map: m, world: w, win: win, shares: make([]share[T], w.Size())}
	a.touched, a.flushes = make([]int, 0, w.Size()), make([]window.Request, 0, w.Size())
	return a, nil
}

// Close ends the array. It is collective, and returns when all ranks have called it.
func (a *Array[T]) Close() error {
	err := a.win.UnlockAll(context.Background())
	for errors.Is(err, verbs.ErrShortage) && !errors.As(err, new(*world.PeerError)) {
		// The process is out of file descriptors. A window with an open epoch cannot be closed.
		err = a.win.UnlockAll(context.Background())
	}
	if err := errors.Join(err, a.win.Close()); err != nil {
		return fmt.Errorf("globalarray: Close: %w", err)
	}
	return nil
}

// Sync makes all earlier operations and local stores of every rank visible to all ranks. It is collective: it waits
// for all ranks.
func (a *Array[T]) Sync(ctx context.Context) error {
	if err := checkContext(ctx, "Sync"); err != nil {
		return err
	}
	// The barrier orders stores before it and loads after it. Sync of the window rejects an array that is closed.
	err := a.win.Sync()
	if err == nil {
		err = a.world.Barrier(ctx)
	}
	if err != nil {
		return fmt.Errorf("globalarray: Sync: %w", err)
	}
	return nil
}

// Part returns the memory of this rank's elements, in the order of their displacements.
func (a *Array[T]) Part() []T { return a.win.Local() }

// Local ranges over this rank's elements with their indices.
func (a *Array[T]) Local() iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		part, rank := a.win.Local(), a.world.Rank()
		for at := 0; at < len(part); {
			first := a.Index(rank, at)
			for run := a.Run(first); run > 0; run-- {
				if !yield(first, &part[at]) {
					return
				}
				first++
				at++
			}
		}
	}
}

package job

import (
	"errors"
	"slices"
	"sync"
)

// attachments are what packages above keep with a World: MPI calls them attributes.
type attachments struct {
	values sync.Map

	mu      sync.Mutex
	closing []*func() error
	over    bool
}

// Attached is what a package above keeps with this World under key, a value of a type
// of its own. first makes it when it is first asked for.
func (w *World) Attached(key any, first func() any) any {
	if value, ok := w.attached.values.Load(key); ok {
		return value
	}
	value, _ := w.attached.values.LoadOrStore(key, first())
	return value
}

// OnClose has f called when this rank has left the job, or failed, and its devices are
// about to be closed, which ends its memory; at once if that has been, and else its error is one of Close. It is not
// called after stop has returned, unless it was being called already. f may wait for goroutines of this rank, whose waits in
// this World end by ErrClosed then, but for no other rank.
func (w *World) OnClose(f func() error) (stop func()) {
	a := &w.attached
	a.mu.Lock()
	over := a.over
	if !over {
		a.closing = append(a.closing, &f)
	}
	a.mu.Unlock()
	if over {
		_ = f()
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.closing = slices.DeleteFunc(a.closing, func(other *func() error) bool { return other == &f })
	}
}

// Orderly reports whether this rank closes its World, or has, and when it began to had not heard of a failure, nor had
// a call end because a rank that it needs has left.
func (w *World) Orderly() bool { return w.orderly.Load() }

// LeftBy is the error of a call that needs a rank which has left.
func (w *World) LeftBy(op string, rank int) error {
	w.missed.Store(true)
	if !w.closed.Load() {
		w.roster.left(rank)
	}
	return &PeerError{Rank: rank, Op: op, Cause: ErrLeft}
}

// Unserved is the error of a call that waits for something which rank does by itself, and will not do any more: rank has failed, or
// has left and ended since. It is nil while it may.
func (w *World) Unserved(op string, rank int) error {
	if err := w.peerError(op, rank); err != nil {
		return err
	}
	return w.endedBy(op, rank)
}

// endedBy is the error of a call that needs a rank which has left and ended since.
func (w *World) endedBy(op string, rank int) error {
	if _, ended := w.endedLeaving(rank); ended {
		return w.LeftBy(op, rank)
	}
	return nil
}

// close calls what is to be called.
func (a *attachments) close() error {
	a.mu.Lock()
	a.over = true
	closing := a.closing
	a.closing = nil
	a.mu.Unlock()
	var err error
	for _, f := range closing {
		err = errors.Join(err, (*f)())
	}
	return err
}

package jobtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/world"
)

// A Script provides the checks of a body. The first check that fails ends the body with its error, so the body need
// not handle each error. The body may run in a process without a test. A package's tests may embed Script in a type
// with more checks. Only the goroutine of the body may use checks; other goroutines pass their errors to it.
type Script struct {
	Ctx   context.Context
	World *world.World
}

// Scripted returns the body of a script.
func Scripted(body func(s *Script)) Body {
	return func(ctx context.Context, w *world.World) error {
		return Checked(func() { body(&Script{ctx, w}) })
	}
}

// failure is the value with which a failed check panics.
type failure struct{ error }

// Checked calls f and returns the error of the check that ended it, if one did. Other goroutines of a body use checks
// within Checked.
func Checked(f func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case failure:
			err = p.error
		default:
			panic(p)
		}
	}()
	f()
	return nil
}

// OK ends the body if err is not nil.
func (s *Script) OK(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Fails ends the body unless err is want.
func (s *Script) Fails(err, want error) {
	s.Check(errors.Is(err, want), "error is %v, want %v", err, want)
}

// Lost ends the body unless err is a PeerError for rank.
func (s *Script) Lost(err error, rank int) {
	var peer *world.PeerError
	s.Check(errors.As(err, &peer) && peer.Rank == rank, "error is %v, want a *world.PeerError of rank %d", err, rank)
}

// Check ends the body unless ok. The error is formatted as by fmt.Errorf.
func (s *Script) Check(ok bool, format string, args ...any) {
	if !ok {
		panic(failure{fmt.Errorf(format, args...)})
	}
}

// Await returns when state returns true.
func (s *Script) Await(what string, state func() bool) { s.OK(await.Until(s.Ctx, what, state)) }

// Barrier is the World's Barrier.
func (s *Script) Barrier() { s.OK(s.World.Barrier(s.Ctx)) }

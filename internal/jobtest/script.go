package jobtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/world"
)

// A Script is what a body checks with: the first check that fails ends the body, whose error it is. It saves a body, which
// may be in a process without a test, the handling of each error. A package's tests may embed it in a type with more.
// Checks are for the goroutine of the body; other goroutines give their errors to it.
type Script struct {
	Ctx   context.Context
	World *world.World
}

// Scripted is the body of a script.
func Scripted(body func(s *Script)) Body {
	return func(ctx context.Context, w *world.World) error {
		return Checked(func() { body(&Script{ctx, w}) })
	}
}

// failure is what a check that fails panics with.
type failure struct{ error }

// Checked calls f and returns the error of the check that ended it, if one did. A body has other goroutines check by it.
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

// OK ends the body if there is an error.
func (s *Script) OK(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Fails ends the body unless err is want.
func (s *Script) Fails(err, want error) {
	s.Check(errors.Is(err, want), "error is %v, want %v", err, want)
}

// Lost ends the body unless err names rank as the one that is missed.
func (s *Script) Lost(err error, rank int) {
	var peer *world.PeerError
	s.Check(errors.As(err, &peer) && peer.Rank == rank, "error is %v, want a *world.PeerError of rank %d", err, rank)
}

// Check ends the body unless ok. Its error is what the rest says, as for fmt.Errorf.
func (s *Script) Check(ok bool, format string, args ...any) {
	if !ok {
		panic(failure{fmt.Errorf(format, args...)})
	}
}

// Await returns when a state has come about.
func (s *Script) Await(what string, state func() bool) { s.OK(await.Until(s.Ctx, what, state)) }

// Barrier is the World's.
func (s *Script) Barrier() { s.OK(s.World.Barrier(s.Ctx)) }

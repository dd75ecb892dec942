package errtext_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/errtext"
)

var errClass = errors.New("not locked")

func TestTextsSayTheirHeadOnce(t *testing.T) {
	call := fmt.Errorf("epoch: rank 2: Unlock: %w", errClass)
	ofWindow := errtext.Errorf("window: %w", call)
	for _, c := range []struct {
		name string
		err  error
		text string
	}{
		{"of a package below", ofWindow, "window: rank 2: Unlock: not locked"},
		{"of the same package", errtext.Errorf("world: Split: %w", errors.New("world: closed")), "world: Split: closed"},
		{"of a package above", errtext.Errorf("world: %w", ofWindow), "world: window: rank 2: Unlock: not locked"},
		{"of no package here", errtext.Errorf("world: Init: %w", errors.New("tcp: Open: no")), "world: Init: tcp: Open: no"},
		{"within another's", errtext.Errorf("window: Close: %w; opened by x", fmt.Errorf("a step: %w", call)), "window: Close: a step: rank 2: Unlock: not locked; opened by x"},
		{"behind a class", errtext.Errorf("world: Init: %w: %w", errClass, errors.New("world: no")), "world: Init: not locked: no"},
		{"joined, twice", errtext.Errorf("world: Run: %w", errors.Join(errors.New("world: a"), errors.New("world: b"), errors.New("world: a"))), "world: Run: a\nb"},
		{"joined, in a row", errtext.Errorf("world: Run: %w", errors.Join(errors.New("a"), errors.New("a"), errors.New("a"))), "world: Run: a"},
		{"with an argument that has a head", errtext.Errorf("window: Serve %q: %w", "window: ", errClass), `window: Serve "window: ": not locked`},
	} {
		require.EqualError(t, c.err, c.text, c.name)
	}
	require.ErrorIs(t, ofWindow, errClass)
	require.ErrorIs(t, ofWindow, call)
}

func TestAfterSaysTheRankOnce(t *testing.T) {
	call := errtext.Errorf("window: %w", errors.New("epoch: rank 2: Unlock: not locked"))
	require.Equal(t, "world: rank 2: window: Unlock: not locked", errtext.After("world: rank 2: ", call))
	require.Equal(t, "world: rank 1: window: rank 2: Unlock: not locked", errtext.After("world: rank 1: ", call))
	require.Equal(t, "world: rank 2: of 2: body failed", errtext.After("world: rank 2: ", errors.New("of 2: body failed")))
	require.Equal(t, "world: rank 2: rank 2 left", errtext.After("world: rank 2: ", errors.New("rank 2 left")))
}

func TestCallIsOfTheNamedPackage(t *testing.T) {
	require.Equal(t, "world: Barrier", errtext.Call("world", "Barrier"))
	require.Equal(t, "window: Fence", errtext.Call("world", "window.Fence"))
	require.Equal(t, "window: Request.Wait", errtext.Call("world", "window.Request.Wait"))
	require.Equal(t, "window: Request.Wait", errtext.Call("window", "Request.Wait"))
}

func TestNumbersFitOneAndMany(t *testing.T) {
	require.Equal(t, "0 ranks", errtext.Count(0, "rank"))
	require.Equal(t, "1 rank", errtext.Count(1, "rank"))
	require.Equal(t, "2 ranks", errtext.Count(uint64(2), "rank"))
	require.Equal(t, "allowed is 0", errtext.Allowed(0))
	require.Equal(t, "allowed are 0 to 1", errtext.Allowed(1))
}

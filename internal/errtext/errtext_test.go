package errtext_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/errtext"
)

var (
	errClass       = errors.New("not locked")
	errEnvironment = errors.New("invalid environment")
)

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
		{"after a class", errtext.Errorf("world: Init: %w: %w", errClass, errors.New("world: no")), "world: Init: not locked: no"},
		{"of a class that stands before it", errtext.Errorf("world: Init: %w: %w", errEnvironment, fmt.Errorf("pmi: %w: PMI_RANK=7", errEnvironment)), "world: Init: invalid environment: PMI_RANK=7"},
		{"of a class that stands before it, composed", errtext.Errorf("world: Init: %w: %w", errEnvironment, errtext.Errorf("a step: %w", fmt.Errorf("pmi: %w: PMI_RANK=7", errEnvironment))), "world: Init: invalid environment: a step: pmi: invalid environment: PMI_RANK=7"},
		{"with a class within", errtext.Errorf("world: connecting: %w", fmt.Errorf("tcp: connecting: %w", errors.New("verbs: peer is gone"))), "world: connecting: tcp: connecting: peer is gone"},
		{"of a package that has carried it out", errtext.Under("tcp: ", "shm: ", errors.New("shm: verbs: no memory")), "tcp: verbs: no memory"},
		{"joined, twice", errtext.Errorf("world: Run: %w", errors.Join(errors.New("world: a"), errors.New("world: b"), errors.New("world: a"))), "world: Run: a\nb"},
		{"joined, of which one has another's text in its own", errtext.Errorf("world: Run: %w", errors.Join(errors.New("world: a"), errors.New("world: a of world: a"))), "world: Run: a\na of world: a"},
		{"joined, of which the last ends as the one before", errtext.Errorf("world: Run: %w", errors.Join(errors.New("epoch: a"), errors.New("no epoch: a"))), "world: Run: a\nno epoch: a"},
		{"after words that say it, too", errtext.Errorf("world: closed: %w", errors.New("closed")), "world: closed: closed"},
		{"composed without a head", errtext.Errorf("world: %w", errtext.Errorf("a step: %w", errors.New("world: a"))), "world: a step: a"},
		{"composed after another's head", errtext.Errorf("window: %w", errtext.Errorf("world: a step: %w", errors.Join(errors.New("world: a"), errors.New("window: b")))), "window: a step: a\nb"},
		{"composed by After", errtext.Errorf("window: %w", &ended{fmt.Errorf("window: rank 2: a step: %w", call)}), "window: rank 2 has failed: a step: Unlock: not locked"},
		{"joined, in a row", errtext.Errorf("world: Run: %w", errors.Join(errors.New("a"), errors.New("a"), errors.New("a"))), "world: Run: a"},
		{"with an argument that has a head", errtext.Errorf("window: Serve %q: %w", "window: ", errClass), `window: Serve "window: ": not locked`},
	} {
		require.EqualError(t, c.err, c.text, c.name)
	}
	require.ErrorIs(t, ofWindow, errClass)
	require.ErrorIs(t, ofWindow, call)
}

// An ended error composes its text at each call of Error.
type ended struct{ cause error }

func (e *ended) Error() string { return errtext.After("world: rank 2 has failed: ", e.cause) }
func (e *ended) Unwrap() error { return e.cause }

func TestAfterSaysTheRankOnce(t *testing.T) {
	call := errtext.Errorf("window: %w", errors.New("epoch: rank 2: Unlock: not locked"))
	require.Equal(t, "world: rank 2: window: Unlock: not locked", errtext.After("world: rank 2: ", call))
	require.Equal(t, "world: rank 1: window: rank 2: Unlock: not locked", errtext.After("world: rank 1: ", call))
	require.Equal(t, "world: rank 2: of 2: body failed", errtext.After("world: rank 2: ", errors.New("of 2: body failed")))
	require.Equal(t, "window: Fence: rank 2 has failed: Unlock: not locked", errtext.After("window: Fence: rank 2 has failed: ", call))
	require.Equal(t, "window: Fence: rank 1 has failed: rank 2: Unlock: not locked", errtext.After("window: Fence: rank 1 has failed: ", call))
	require.Equal(t, "gone, after rank 2 had failed: window: Unlock: not locked", errtext.After("gone, after rank 2 had failed: ", call))
	require.Equal(t, "window: lock of rank 2: rank 2: Unlock: not locked", errtext.After("window: lock of rank 2: ", call))
	require.Equal(t, "world: rank 2: <nil>", errtext.After("world: rank 2: ", nil))
	require.Equal(t, "world: rank 2: rank 2 left", errtext.After("world: rank 2: ", errors.New("rank 2 left")))
}

func TestCallIsOfTheNamedPackage(t *testing.T) {
	require.Equal(t, "world: Barrier", errtext.Call("world", "Barrier"))
	require.Equal(t, "window: Fence", errtext.Call("world", "window.Fence"))
	require.Equal(t, "window: Request.Wait", errtext.Call("world", "window.Request.Wait"))
	require.Equal(t, "window: Request.Wait", errtext.Call("window", "Request.Wait"))
}

func TestListsEndInAnd(t *testing.T) {
	all := []fmt.Stringer{time.Second, time.Minute, time.Hour}
	require.Empty(t, errtext.List(all[:0]))
	require.Equal(t, "1s", errtext.List(all[:1]))
	require.Equal(t, "1s and 1m0s", errtext.List(all[:2]))
	require.Equal(t, "1s, 1m0s and 1h0m0s", errtext.List(all))
}

func TestNumbersFitOneAndMany(t *testing.T) {
	require.Equal(t, "0 ranks", errtext.Count(0, "rank"))
	require.Equal(t, "1 rank", errtext.Count(1, "rank"))
	require.Equal(t, "2 ranks", errtext.Count(uint64(2), "rank"))
	require.Equal(t, "1 address", errtext.Count(1, "address"))
	require.Equal(t, "2 addresses", errtext.Count(2, "address"))
	require.Equal(t, "allowed is 0", errtext.Allowed(0))
	require.Equal(t, "allowed are 0 to 1", errtext.Allowed(1))
}

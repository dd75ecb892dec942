package hashtable

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
)

// A protocol is what some clients do, step by step, to a state S that has all there is.
type protocol[S comparable] interface {
	clients() int
	// ended tells whether a client has nothing more to do.
	ended(s *S, client int) bool
	// step carries out the next step of a client, if it can be carried out.
	step(s *S, client int) bool
	// inspect looks at a state, and tells what is wrong by failing. done: all have ended. by is the client whose step
	// has led to it from one that was inspected, or none.
	inspect(s *S, done bool, by int)
}

// none is no client.
const none = -1

// An exploration visits every state that a protocol may come to, until one is wrong.
type exploration[S comparable] struct {
	known map[S]struct{}
	wrong string
}

func (e *exploration[S]) fail(what string) {
	if e.wrong == "" {
		e.wrong = what
	}
}

// racedStates are visited at most of a protocol that is right under the race detector, with which a state takes many times
// as long: it finds nothing here.
const racedStates = 1 << 12

// explore visits every state that comes after first. wrong: the protocol is.
func (e *exploration[S]) explore(p protocol[S], first S, wrong bool) {
	type visit struct {
		state S
		by    int
	}
	e.known = map[S]struct{}{first: {}}
	visits := []visit{{first, none}}
	// These are allocated once.
	now, next := new(visit), new(S)
	for len(visits) > 0 && e.wrong == "" && (fewer == 1 || wrong || len(e.known) < racedStates) {
		*now = visits[len(visits)-1]
		visits = visits[:len(visits)-1]
		moved, done := false, true
		for client := range p.clients() {
			if p.ended(&now.state, client) {
				continue
			}
			done = false
			*next = now.state
			if !p.step(next, client) {
				continue
			}
			moved = true
			known := len(e.known)
			if e.known[*next] = struct{}{}; len(e.known) > known {
				visits = append(visits, visit{*next, client})
			}
		}
		p.inspect(&now.state, done, now.by)
		if !done && !moved {
			e.fail("nobody can go on")
		}
	}
}

// large are the protocols with the most states, by the names of their tests. A plain run explores one of them, whose turn
// it is by the seed, and a run with RMA_TEST_SIZE=7 all: they are models, which change seldom.
var large = []string{
	"one index after another far away", "puts and a delete", "two keys, as many slots", "puts", "a key that goes and comes",
	"one index after another", "two who replace",
}

// skipUnlessTurn skips the exploration of a large protocol unless it is its turn.
func skipUnlessTurn(t *testing.T, name string) {
	t.Helper()
	number := slices.Index(large, name)
	if number >= 0 && !testsize.Turn(number, len(large)) {
		t.Skip("skipped: it is explored where another RMA_TEST_SEED or an RMA_TEST_SIZE of 7 says so")
	}
}

// judge has the test fail if a protocol that is right was found wrong, or one that is wrong was not.
func (e *exploration[S]) judge(t *testing.T, wrong bool) {
	if wrong {
		require.NotEmpty(t, e.wrong)
	} else {
		require.Empty(t, e.wrong)
	}
	t.Logf("%d states: %s", len(e.known), e.wrong)
}

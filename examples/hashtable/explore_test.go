package hashtable

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/testsize"
)

// A protocol is the steps that some clients take on a shared state S. The state contains everything that determines the
// next steps.
type protocol[S comparable] interface {
	clients() int
	// ended reports whether a client has no more steps.
	ended(s *S, client int) bool
	// step carries out the next step of a client. It reports whether the client could take it.
	step(s *S, client int) bool
	// inspect checks a state, and reports a violation by failing. done is set if all clients have ended. by is the
	// client whose step led to the state from an inspected one, or none.
	inspect(s *S, done bool, by int)
}

// none stands for no client.
const none = -1

// An exploration visits every state that a protocol can reach, until it finds a violation.
type exploration[S comparable] struct {
	known map[S]struct{}
	wrong string
}

func (e *exploration[S]) fail(what string) {
	if e.wrong == "" {
		e.wrong = what
	}
}

// racedStates is the number of states to visit under the race detector, if the protocol is right. A state takes many
// times as long there, and the detector finds nothing in a model.
const racedStates = 1 << 12

// explore visits every state that can follow first. wrong is set if the protocol is wrong.
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

// large has the names of the tests of the protocols with the most states. A plain run explores one of them, selected by
// the seed. A run with RMA_TEST_SIZE=7 explores all. One is enough because the models seldom change.
var large = []string{
	"one index after another far away", "puts and a delete", "two keys, as many slots", "puts", "a key that goes and comes",
	"one index after another", "two who replace",
}

// skipUnlessTurn skips the exploration of a large protocol that this run does not select.
func skipUnlessTurn(t *testing.T, name string) {
	t.Helper()
	number := slices.Index(large, name)
	if number >= 0 && !testsize.Turn(number, len(large)) {
		t.Skip("skipped: it is explored where another RMA_TEST_SEED or an RMA_TEST_SIZE of 7 says so")
	}
}

// judge fails the test if a right protocol has a violation, or a wrong one has none.
func (e *exploration[S]) judge(t *testing.T, wrong bool) {
	if wrong {
		require.NotEmpty(t, e.wrong)
	} else {
		require.Empty(t, e.wrong)
	}
	t.Logf("%d states: %s", len(e.known), e.wrong)
}

package hashtable

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A protocol is what some clients do, step by step, to a state S that has all there is.
type protocol[S comparable] interface {
	clients() int
	// ended tells whether a client has nothing more to do.
	ended(s *S, client int) bool
	// step carries out the next step of a client, if it can be carried out.
	step(s *S, client int) bool
	// inspect looks at a state, and tells what is wrong by failing. done: all have ended.
	inspect(s *S, done bool)
}

// An exploration visits every state that a protocol may come to, until one is wrong.
type exploration[S comparable] struct {
	known map[S]bool
	wrong string
}

func (e *exploration[S]) fail(what string) {
	if e.wrong == "" {
		e.wrong = what
	}
}

// racedStates are visited at most under the race detector, with which a state takes many times as long: it finds nothing here.
const racedStates = 1 << 16

// explore visits every state that comes after s.
func (e *exploration[S]) explore(p protocol[S], s S) {
	if e.known == nil {
		e.known = make(map[S]bool)
	}
	if e.known[s] || e.wrong != "" || fewer > 1 && len(e.known) >= racedStates {
		return
	}
	e.known[s] = true
	moved, done := false, true
	for i := range p.clients() {
		if p.ended(&s, i) {
			continue
		}
		done = false
		if next := s; p.step(&next, i) {
			moved = true
			e.explore(p, next)
		}
	}
	p.inspect(&s, done)
	if !done && !moved {
		e.fail("nobody can go on")
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

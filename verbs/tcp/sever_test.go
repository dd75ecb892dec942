package tcp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// Who is given up in the middle of a write has written what has come of it until then.
// The rest, which comes later, goes nowhere.
func TestSever(t *testing.T) {
	s := newStage(t)
	write := message(frame{kind: kindWrite, request: 2, rkey: openKey, address: s.base, total: 500}, text(500))
	// All of this has come, and nobody has looked.
	s.feed = append(message(frame{kind: kindSend, request: 1, total: 1}, "x"), write[:len(write)-400]...)
	s.pair.Sever()
	require.Equal(t, text(100), string(s.area[from:from+100]))
	require.Equal(t, byte('x'), s.landing[0])
	before := string(s.area)
	s.hear(s.script, write[len(write)-400:], message(frame{kind: kindWrite, request: 3, rkey: openKey, address: s.base, total: 1}, "y"))
	require.Equal(t, before, string(s.area))
	s.expectUntouched(t)
	require.Equal(t, verbs.StateError, s.pair.State())
	require.ErrorIs(t, s.pair.Err(), verbs.ErrDisconnected)
	require.ErrorContains(t, s.pair.Err(), "given up")
	var last frame
	for _, f := range s.said(t) {
		last = f
	}
	require.Equal(t, kindBye, last.kind)
	require.Equal(t, uint64(byeSevered), last.operand)
	completions := s.completions()
	require.Equal(t, verbs.Completion{ID: 100, QueuePair: s.pair.Number(), Opcode: verbs.OpReceive, Bytes: 1}, completions[0])
	for _, c := range completions[1:] {
		require.Equal(t, verbs.StatusFlushed, c.Status)
	}
	require.Len(t, completions, 8, "all that was posted")
	pair := s.pair
	pair.Sever()
	require.NoError(t, pair.Close())
	require.Zero(t, testing.AllocsPerRun(10, pair.Sever), "memory to read what is over")
}

// Who was given up is told so.
func TestSevered(t *testing.T) {
	s := newStage(t)
	s.hear(s.script, message(frame{kind: kindBye, operand: byeSevered}, ""))
	require.ErrorIs(t, s.pair.Err(), verbs.ErrDisconnected)
	require.ErrorContains(t, s.pair.Err(), "the peer has taken this side for dead")
}

// A peer that sends all the time does not keep Sever from returning.
func TestSeverOfOneThatGoesOn(t *testing.T) {
	s := newStage(t)
	s.piece = 1
	const total = 1000
	sent := message(frame{kind: kindWrite, request: 1, rkey: openKey, address: s.base, total: total}, text(total))
	for range 100 {
		sent = append(sent, message(frame{kind: kindPing}, "")...)
	}
	s.feed = sent
	s.pair.Sever()
	require.Equal(t, verbs.StateError, s.pair.State())
	require.NotEmpty(t, s.feed)
}

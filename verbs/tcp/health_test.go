package tcp

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// The clock of these tests is the test's: a device of an hour's silence.

// tickUntil looks at the peer every six minutes from one time after the connection was made to another.
func (s *stage) tickUntil(begun time.Time, from, to int) {
	for minutes := from; minutes < to; minutes += 6 {
		s.tickAt(begun, minutes)
	}
	s.tickAt(begun, to)
}

// tickAt looks at the peer as if it was so long after the connection was made.
func (s *stage) tickAt(begun time.Time, minutes int) {
	s.tick(begun.Add(time.Duration(minutes) * time.Minute))
}

func TestSilence(t *testing.T) {
	s := newStage(t)
	begun := s.health.receivedAt
	s.tickUntil(begun, 0, 19)
	require.Empty(t, s.said(t), "asked too soon")
	s.tickAt(begun, 21)
	require.Equal(t, kindPing, s.said(t)[0].kind)
	s.tickUntil(begun, 21, 42)
	require.Empty(t, s.said(t), "asked twice")
	s.hear(s.script, message(frame{kind: kindPong}, ""))
	s.tickUntil(begun, 48, 67)
	require.Equal(t, verbs.StateReady, s.pair.State())
	require.Empty(t, s.said(t), "asked too soon after the answer")
	s.tickAt(begun, 68)
	require.Equal(t, kindPing, s.said(t)[0].kind)
	s.tickUntil(begun, 68, 107)
	require.Equal(t, verbs.StateReady, s.pair.State(), "given up before an hour of silence")
	s.tickAt(begun, 108)
	require.Equal(t, verbs.StateError, s.pair.State())
	require.ErrorIs(t, s.pair.Err(), verbs.ErrPeerGone)
	require.NotErrorIs(t, s.pair.Err(), verbs.ErrDisconnected)
	require.ErrorContains(t, s.pair.Err(), "the peer was silent for 1h0m0s")
	completions := s.completions()
	require.Equal(t, verbs.StatusRetryExceeded, completions[0].Status)
	require.Equal(t, verbs.StatusFlushed, completions[1].Status)
}

// A rank that was stopped itself asks before it judges.
func TestSilenceOfThisSide(t *testing.T) {
	s := newStage(t)
	begun := s.health.receivedAt
	s.tickAt(begun, 20)
	s.tickAt(begun, 300)
	require.Equal(t, verbs.StateReady, s.pair.State())
	s.tickAt(begun, 308)
	require.Equal(t, kindPing, s.said(t)[0].kind)
	s.tickAt(begun, 320)
	require.Equal(t, verbs.StateReady, s.pair.State(), "no time to answer")
	s.hear(s.script, message(frame{kind: kindPong}, ""))
	s.tickAt(begun, 340)
	require.Equal(t, verbs.StateReady, s.pair.State())
}

// A pause of this side, in which the peer may have stood still as well, counts for 12 minutes of the half hour that the
// peer has for its answer.
func TestPauseAfterAPing(t *testing.T) {
	s := newStage(t)
	begun := s.health.receivedAt
	s.tickUntil(begun, 0, 36)
	require.Equal(t, kindPing, s.said(t)[0].kind)
	s.tickAt(begun, 300)
	require.Equal(t, verbs.StateReady, s.pair.State(), "given up for a pause of this side")
	s.tickUntil(begun, 300, 311)
	require.Equal(t, verbs.StateReady, s.pair.State(), "no time to answer")
	s.tickAt(begun, 312)
	require.ErrorContains(t, s.pair.Err(), "the peer was silent for 1h")
}

// A pause also counts for 12 minutes of the hour in which the peer must have read something.
func TestPauseOfAWriter(t *testing.T) {
	s := newStage(t)
	begun := s.health.receivedAt
	s.full = true
	at := func(minutes int) {
		s.hear(s.script, message(frame{kind: kindPing}, ""))
		s.tickAt(begun, minutes)
	}
	at(0)
	for minutes := 6; minutes <= 36; minutes += 6 {
		at(minutes)
	}
	at(300)
	at(306)
	require.Equal(t, verbs.StateReady, s.pair.State(), "given up for a pause of this side")
	at(311)
	require.Equal(t, verbs.StateReady, s.pair.State(), "given up too soon")
	at(312)
	require.ErrorContains(t, s.pair.Err(), "the peer has read nothing for 1h")
}

// A rank that polls once in an hour gives up a dead peer, too.
func TestPeerOfARankThatSeldomPolls(t *testing.T) {
	for what, judged := range map[string]int{"the peer was silent": 5, "the peer has read nothing": 5} {
		s := newStage(t)
		begun := s.health.receivedAt
		s.full = true
		for hour := range judged + 1 {
			require.Equal(t, verbs.StateReady, s.pair.State(), "before hour %d", hour)
			if what == "the peer has read nothing" {
				s.hear(s.script, message(frame{kind: kindPing}, ""))
			}
			s.tickAt(begun, 60*hour)
		}
		require.ErrorContains(t, s.pair.Err(), what)
	}
}

// A peer that was not heard for long before a pause of this side has time to answer after it.
func TestPauseInASilence(t *testing.T) {
	s := newStage(t)
	begun := s.health.receivedAt
	s.tickUntil(begun, 0, 42)
	require.Equal(t, kindPing, s.said(t)[0].kind)
	s.tickAt(begun, 300)
	require.Equal(t, verbs.StateReady, s.pair.State(), "given up at once after a pause of this side")
	s.tickAt(begun, 305)
	require.Equal(t, verbs.StateReady, s.pair.State(), "no time to answer")
	s.tickAt(begun, 306)
	require.ErrorContains(t, s.pair.Err(), "the peer was silent for 1h")
}

// What the peer has read while this side was stopped is found out before it is judged.
func TestRoomAfterAPause(t *testing.T) {
	s := newStage(t)
	begun := s.health.receivedAt
	s.full = true
	s.hear(s.script, message(frame{kind: kindPing}, ""))
	for minutes := 6; minutes <= 54; minutes += 6 {
		s.hear(s.script, message(frame{kind: kindPing}, ""))
		s.tickAt(begun, minutes)
	}
	s.full = false
	s.tickAt(begun, 300)
	require.Equal(t, verbs.StateReady, s.pair.State(), "not asked whether there is room: %v", s.pair.Err())
}

// A peer that talks but reads nothing is given up too.
func TestPeerThatDoesNotRead(t *testing.T) {
	s := newStage(t)
	begun := s.health.receivedAt
	s.full = true
	s.hear(s.script, message(frame{kind: kindPing}, ""))
	for minutes := 10; minutes < 70; minutes += 10 {
		require.Equal(t, verbs.StateReady, s.pair.State(), "after %d minutes", minutes)
		s.tickAt(begun, minutes)
		s.hear(s.script, message(frame{kind: kindPing}, ""))
	}
	s.tickAt(begun, 70)
	require.ErrorIs(t, s.pair.Err(), verbs.ErrPeerGone)
	require.NotErrorIs(t, s.pair.Err(), verbs.ErrDisconnected)
	require.ErrorContains(t, s.pair.Err(), "the peer has read nothing for 1h")
}

// A connection whose request was rejected is closed if its peer does not close it.
func TestShutdownEnds(t *testing.T) {
	s := newStage(t)
	s.hear(s.script, message(frame{kind: kindWrite, request: 1, rkey: 77, total: 1}, "x"))
	require.False(t, s.closed)
	s.tick(time.Now().Add(59 * time.Minute))
	require.False(t, s.closed)
	s.tick(time.Now().Add(61 * time.Minute))
	require.True(t, s.closed)
}

// The peer learns of receives before it runs out of them, by a frame of their own only
// if none goes anyway.
func TestGrants(t *testing.T) {
	s := newBare(t)
	post := func(n int) {
		for range n {
			_, err := s.pair.PostReceive([]verbs.ReceiveRequest{{}})
			require.NoError(t, err)
		}
	}
	use := func(from uint32, n int) {
		for i := range uint32(n) {
			s.hear(s.script, message(frame{kind: kindSend, request: from + i}, ""))
		}
	}
	grants := func() (all []uint32) {
		s.visit()
		for _, f := range s.said(t) {
			all = append(all, f.granted)
		}
		return all
	}
	post(8)
	require.Equal(t, []uint32{8}, grants(), "the peer knows of none")
	use(1, 3)
	post(3)
	require.Empty(t, grants(), "the peer has 5 left")
	use(4, 3)
	require.Equal(t, []uint32{11}, grants(), "the peer has 2 left, and there are 3 more")
	post(2)
	_, err := s.pair.PostSend([]verbs.SendRequest{{Opcode: verbs.OpRDMAWrite}})
	require.NoError(t, err)
	require.Equal(t, []uint32{13}, grants(), "the write tells of them")
}

// A sleeper that is the only one who polls does not keep a grant from leaving.
func TestGrantWhileSomebodySleeps(t *testing.T) {
	s := newBare(t)
	s.said(t)
	s.device.channel.Prepare()
	defer s.device.channel.Finish()
	_, err := s.pair.PostReceive([]verbs.ReceiveRequest{{}})
	require.NoError(t, err)
	require.Equal(t, uint32(1), s.said(t)[0].granted)
}

// cutting is a stream that is reset: whoever uses it first is told why, then it has just
// ended.
type cutting struct {
	*script
	why error
}

func (c *cutting) writev(from [][]byte) (int, error) {
	c.ended = true
	return 0, c.why
}

// Why a connection broke is told also if it was found out by writing.
func TestCauseFoundByWriting(t *testing.T) {
	for _, c := range []struct {
		why  error
		text string
	}{
		{syscall.ECONNRESET, "the connection broke: " + syscall.ECONNRESET.Error()},
		{syscall.ETIMEDOUT, "the connection broke: " + syscall.ETIMEDOUT.Error()},
		{syscall.EPIPE, "the connection ended"},
	} {
		s := newStage(t)
		s.stream = &cutting{s.script, c.why}
		_, err := s.pair.PostSend([]verbs.SendRequest{{Opcode: verbs.OpSend, Flags: verbs.Inline}})
		require.NoError(t, err)
		s.hear(s.script, message(frame{kind: kindPing}, ""))
		s.visit()
		require.ErrorIs(t, s.pair.Err(), verbs.ErrPeerGone)
		require.NotErrorIs(t, s.pair.Err(), verbs.ErrDisconnected)
		require.ErrorContains(t, s.pair.Err(), c.text)
	}
}

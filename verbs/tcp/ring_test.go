package tcp

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// depth is neither a power of two nor a multiple of the first length of a ring.
const depth = 21

// newDeep is a connection whose queue pair has depth as its limits.
func newDeep(t *testing.T) *bare {
	d := bareDevice()
	queue, err := d.CreateCompletionQueue(1024)
	require.NoError(t, err)
	s := newBareOn(t, d, verbs.QueuePairConfig{SendQueue: queue, ReceiveQueue: queue, MaxSends: depth, MaxReceives: depth})
	s.said(t)
	return s
}

// ids takes what has completed, all of it with success.
func (b *bare) ids(t *testing.T) (ids []int) {
	t.Helper()
	for _, c := range b.completions() {
		require.Equal(t, verbs.StatusSuccess, c.Status)
		ids = append(ids, int(c.ID))
	}
	return ids
}

func numbers(from, to int) (all []int) {
	for i := from; i <= to; i++ {
		all = append(all, i)
	}
	return all
}

// Requests that wait, with their inline data, stay as they are and in order while the ring grows up to its limit.
func TestRequestsInAGrowingRing(t *testing.T) {
	s := newDeep(t)
	post := func(i int) error {
		_, err := s.pair.PostSend([]verbs.SendRequest{{
			ID: uint64(i), Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled | verbs.Inline,
			Segments: []verbs.Segment{{Memory: binary.LittleEndian.AppendUint64(nil, uint64(i))}},
		}})
		return err
	}
	for i := range 5 {
		require.NoError(t, post(i+1))
	}
	s.said(t)
	s.hear(s.script, message(frame{kind: kindAcknowledge, acked: 3}, ""))
	require.Equal(t, numbers(1, 3), s.ids(t))
	// The fourth is the first in the ring now. The first request fills a batch. The others wait until it has left.
	s.full = true
	for i := 6; i <= 3+depth; i++ {
		require.NoError(t, post(i))
	}
	require.Equal(t, depth, len(s.pair.sends))
	require.ErrorIs(t, post(99), verbs.ErrQueueFull)
	s.full = false
	s.visit()
	for i := 6; i <= 3+depth; i++ {
		f, payload := s.next(t)
		require.EqualValues(t, i, f.request)
		require.EqualValues(t, i, binary.LittleEndian.Uint64(payload))
	}
	s.hear(s.script, message(frame{kind: kindAcknowledge, acked: 3 + depth}, ""))
	require.Equal(t, numbers(4, 3+depth), s.ids(t))
}

// Receives stay in order while their ring grows up to its limit.
func TestReceivesInAGrowingRing(t *testing.T) {
	s := newDeep(t)
	memory := make([]byte, 64)
	post := func(i int) error {
		_, err := s.pair.PostReceive([]verbs.ReceiveRequest{{ID: uint64(i), Segments: []verbs.Segment{{Memory: memory[i : i+1], LKey: reservedLKey}}}})
		return err
	}
	send := func(from, to int) {
		for _, i := range numbers(from, to) {
			s.hear(s.script, message(frame{kind: kindSend, request: uint32(i), total: 1}, string(rune(i))))
		}
	}
	for _, i := range numbers(1, 5) {
		require.NoError(t, post(i))
	}
	s.visit()
	send(1, 3)
	require.Equal(t, numbers(1, 3), s.ids(t))
	for _, i := range numbers(6, 3+depth) {
		require.NoError(t, post(i))
	}
	require.Equal(t, depth, len(s.pair.receives))
	require.ErrorIs(t, post(40), verbs.ErrQueueFull)
	s.visit()
	send(4, 3+depth)
	require.Equal(t, numbers(4, 3+depth), s.ids(t))
	for _, i := range numbers(1, 3+depth) {
		require.EqualValues(t, i, memory[i])
	}
}

// Responses that wait stay in order while their ring grows.
func TestResponsesInAGrowingRing(t *testing.T) {
	s := newDeep(t)
	r := s.region(make([]byte, 8), openKey, rights)
	add := func(from, to int) {
		for _, i := range numbers(from, to) {
			s.hear(s.script, message(frame{kind: kindFetchAdd, request: uint32(i), rkey: openKey, address: r.Remote().Address, operand: 1}, ""))
		}
	}
	add(1, 3)
	require.Len(t, s.said(t), 3)
	s.full = true
	_, err := s.pair.PostSend([]verbs.SendRequest{{Opcode: verbs.OpRDMAWrite}})
	require.NoError(t, err)
	add(4, 3+maxReads)
	require.Len(t, s.responses.queue, maxReads)
	s.full = false
	s.visit()
	s.next(t) // the write
	said := s.said(t)
	require.Len(t, said, maxReads)
	for i, f := range said {
		require.Equal(t, kindAtomicResponse, f.kind)
		require.EqualValues(t, 4+i, f.request)
		require.EqualValues(t, 3+i, f.operand)
	}
}

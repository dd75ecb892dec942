package tcp

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// useLookAhead has a connection receive that overwrites the whole look-ahead of its device.
func (b *bare) useLookAhead(t *testing.T) {
	t.Helper()
	pings := bytes.Repeat(message(frame{kind: kindPing}, ""), lookAhead/commonSize)
	b.hear(b.script, pings)
	require.NoError(t, b.pair.Err())
	require.Equal(t, pings, b.device.input.ahead[:])
}

// beside is another connection of the same device and queue.
func (b *bare) beside(t *testing.T) *bare {
	t.Helper()
	return newBareOn(t, b.device, verbs.QueuePairConfig{SendQueue: b.queue, ReceiveQueue: b.queue})
}

// effects are what a peer's frames have done.
type effects struct {
	state         verbs.State
	err           string
	carried       uint32
	completions   []verbs.Completion
	responses     []frame
	payloads      []string
	area, landing string
}

// effects takes the effects. Acknowledgements, and the counters that other frames carry, depend on when they leave.
func (s *stage) effects(t *testing.T) effects {
	t.Helper()
	require.Empty(t, s.feed)
	require.Zero(t, s.in.end)
	require.Zero(t, s.in.missing)
	e := effects{state: s.pair.State(), carried: s.in.carried, completions: s.completions(), area: string(s.area), landing: string(s.landing)}
	if err := s.pair.Err(); err != nil {
		e.err = err.Error()
	}
	for len(s.spoken) > 0 {
		f, payload := s.next(t)
		if f.acked, f.granted = 0, 0; f.kind != kindAcknowledge {
			e.responses = append(e.responses, f)
			e.payloads = append(e.payloads, string(payload))
		}
	}
	return e
}

// Frames of each kind have the same effects, whatever the byte at which the stream pauses, while another connection
// receives.
func TestPauses(t *testing.T) {
	awaiting := func(t *testing.T) *stage {
		d := bareDevice()
		queue, err := d.CreateCompletionQueue(1024)
		require.NoError(t, err)
		s := &stage{bare: newAwaiting(t, d, verbs.QueuePairConfig{SendQueue: queue, ReceiveQueue: queue})}
		_, err = s.pair.PostSend([]verbs.SendRequest{{ID: 1, Opcode: verbs.OpRDMAWrite, Segments: []verbs.Segment{{Memory: []byte("abc"), LKey: reservedLKey}}}})
		require.NoError(t, err)
		return s
	}
	ready := func(t *testing.T) *stage { return newStage(t) }
	// The peer has executed the requests of the stage but the last.
	executed := func(t *testing.T) *stage {
		s := newStage(t)
		s.hear(s.script, message(frame{kind: kindReadResponse, request: 2, acked: 1}, text(100)), message(frame{kind: kindAtomicResponse, request: 3, acked: 3}, ""))
		return s
	}
	for _, c := range []struct {
		name  string
		begin func(t *testing.T) *stage
		say   func(s *stage) [][]byte
		check func(t *testing.T, e effects)
	}{
		{"requests and responses", ready, func(s *stage) [][]byte {
			word := binary.NativeEndian.Uint64(s.area[from+72:])
			return [][]byte{
				message(frame{kind: kindPing}, ""),
				message(frame{kind: kindAcknowledge, acked: 1, granted: 1}, ""),
				message(frame{kind: kindWrite, flags: flagSignalled, request: 1, acked: 1, granted: 1, rkey: openKey, address: s.base, total: 8}, "abcdefgh"),
				message(frame{kind: kindWriteImmediate, request: 2, acked: 1, granted: 1, rkey: openKey, address: s.base + 9, total: 5, immediate: 7}, "ijklm"),
				message(frame{kind: kindSend, flags: flagSignalled, request: 3, acked: 1, granted: 1, total: 6}, "nopqrs"),
				message(frame{kind: kindSend, flags: flagImmediate, request: 4, acked: 1, granted: 1, total: 3, immediate: 8}, "tuv"),
				message(frame{kind: kindRead, request: 5, acked: 1, granted: 1, rkey: openKey, address: s.base, total: 20}, ""),
				message(frame{kind: kindFetchAdd, request: 6, acked: 1, granted: 1, rkey: openKey, address: s.base + 64, operand: 3}, ""),
				message(frame{kind: kindCompareSwap, request: 7, acked: 1, granted: 1, rkey: openKey, address: s.base + 72, operand: 0x0102030405060708, compare: word}, ""),
				message(frame{kind: kindReadResponse, request: 2, acked: 1, granted: 1}, text(100)),
				message(frame{kind: kindAtomicResponse, request: 3, acked: 1, granted: 1, operand: 9}, ""),
				message(frame{kind: kindPong, acked: 4, granted: 1}, ""),
			}
		}, func(t *testing.T, e effects) {
			require.EqualValues(t, 7, e.carried)
			require.Len(t, e.completions, 7, "4 of requests, 3 of receives")
			var kinds []kind
			for _, f := range e.responses {
				kinds = append(kinds, f.kind)
			}
			require.Equal(t, []kind{kindPong, kindReadResponse, kindAtomicResponse, kindAtomicResponse}, kinds)
			require.EqualValues(t, 0x0102030405060708, binary.NativeEndian.Uint64([]byte(e.area[from+72:from+80])))
		}},
		{"a rejection of a request", executed, func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindRequestRejection, acked: 3, request: 4, operand: uint64(verbs.StatusRemoteAccess)}, "")}
		}, func(t *testing.T, e effects) { require.Contains(t, e.err, "request 4") }},
		{"a bye", executed, func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindBye, acked: 3, operand: byeClosed}, "")}
		}, func(t *testing.T, e effects) { require.Contains(t, e.err, "the peer closed its queue pair") }},
		{"an accept", awaiting, func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindAccept}, "")}
		}, func(t *testing.T, e effects) {
			require.Equal(t, verbs.StateReady, e.state)
			require.Equal(t, []string{"abc"}, e.payloads)
		}},
		{"a reject", awaiting, func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindReject}, "no room")}
		}, func(t *testing.T, e effects) { require.Contains(t, e.err, "no room") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole := c.begin(t)
			feed := bytes.Join(c.say(whole), nil)
			whole.hear(whole.script, feed)
			want := whole.effects(t)
			c.check(t, want)
			for cut := range feed {
				s := c.begin(t)
				other := s.beside(t)
				feed := bytes.Join(c.say(s), nil)
				s.hear(s.script, feed[:cut])
				other.useLookAhead(t)
				s.hear(s.script, feed[cut:])
				require.Equal(t, want, s.effects(t), "a pause after %d bytes of %d", cut, len(feed))
			}
		})
	}
}

// A header of which part is at the end of the look-ahead is processed as any other, also if another connection receives
// before the rest arrives.
func TestHeaderAcrossTheLookAhead(t *testing.T) {
	const operand, compare = 0x0102030405060708, 0x1112131415161718
	for inside := 1; inside < rules[kindCompareSwap].size; inside++ {
		for _, paused := range []bool{false, true} {
			s := newStage(t)
			other := s.beside(t)
			binary.NativeEndian.PutUint64(s.area[from+64:], compare)
			// Pings and a write fill the look-ahead but for that part.
			rest := lookAhead - inside - rules[kindWrite].size
			pings := (rest - 1) / commonSize
			rest -= pings * commonSize
			feed := bytes.Repeat(message(frame{kind: kindPing}, ""), pings)
			feed = append(feed, message(frame{kind: kindWrite, request: 1, rkey: openKey, address: s.base, total: uint32(rest)}, text(rest))...)
			require.Len(t, feed, lookAhead-inside)
			feed = append(feed, message(frame{kind: kindCompareSwap, request: 2, rkey: openKey, address: s.base + 64, operand: operand, compare: compare}, "")...)
			feed = append(feed, message(frame{kind: kindFetchAdd, request: 3, rkey: openKey, address: s.base + 64, operand: 1}, "")...)
			if paused {
				s.hear(s.script, feed[:lookAhead])
				other.useLookAhead(t)
				feed = feed[lookAhead:]
			}
			s.hear(s.script, feed)
			require.NoError(t, s.pair.Err(), "%d bytes inside", inside)
			require.EqualValues(t, 3, s.in.carried)
			require.EqualValues(t, operand+1, binary.NativeEndian.Uint64(s.area[from+64:]))
			said := s.said(t)
			require.Equal(t, []uint64{compare, operand}, []uint64{said[len(said)-2].operand, said[len(said)-1].operand})
		}
	}
}

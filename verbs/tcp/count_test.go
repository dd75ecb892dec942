package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// What is posted together leaves in one system call, if it is not left out.
func TestBatches(t *testing.T) {
	for without, want := range map[Optimization]int{0: 1, Batches: 20} {
		s := newBare(t)
		s.device.options.Without = without
		requests := make([]verbs.SendRequest, 20)
		memory := make([]byte, len(requests)*2000)
		for i := range requests {
			requests[i] = verbs.SendRequest{Opcode: verbs.OpRDMAWrite, Segments: []verbs.Segment{{Memory: memory[i*100:][:i*20], LKey: reservedLKey}}}
		}
		s.said(t)
		s.writes = 0
		_, err := s.pair.PostSend(requests)
		require.NoError(t, err)
		s.visit()
		require.Equal(t, want, s.writes)
		require.Len(t, s.said(t), len(requests))
	}
}

// What a request of 8 bytes takes on the wire beside its payload. In version 1 of the frames it was 48 bytes each.
func TestBytesOfHeaders(t *testing.T) {
	for opcode, want := range map[verbs.Opcode]int{
		verbs.OpSend: 24, verbs.OpSendImmediate: 28, verbs.OpRDMAWrite: 36, verbs.OpRDMAWriteImmediate: 40,
		verbs.OpRDMARead: 36, verbs.OpFetchAdd: 40, verbs.OpCompareSwap: 48,
	} {
		s := newBare(t)
		s.hear(s.script, message(frame{kind: kindAcknowledge, granted: 1}, ""))
		s.said(t)
		payload := 0
		if opcode < verbs.OpRDMARead {
			payload = 8
		}
		_, err := s.pair.PostSend([]verbs.SendRequest{{Opcode: opcode, Segments: []verbs.Segment{{Memory: make([]byte, 8), LKey: reservedLKey}}}})
		require.NoError(t, err)
		require.Equal(t, want, len(s.spoken)-payload, "opcode %d", opcode)
	}
	for k, want := range map[kind]int{kindRead: 20, kindFetchAdd: 28, kindCompareSwap: 28} {
		s := newStage(t)
		s.hear(s.script, message(frame{kind: k, request: 1, rkey: openKey, address: s.base, total: 8}, ""))
		payload := 0
		if k == kindRead {
			payload = 8
		}
		require.Equal(t, want, len(s.spoken)-payload, "response to a %v", k)
	}
}

// One visit sends no more than visitBytes and a batch, though there is room for all, and
// the next ones send the rest.
func TestVisitsAreBounded(t *testing.T) {
	s := newBare(t)
	const pieces = 48
	piece := make([]byte, maxPayload)
	requests := make([]verbs.SendRequest, pieces)
	for i := range requests {
		requests[i] = verbs.SendRequest{Opcode: verbs.OpRDMAWrite, Segments: []verbs.Segment{{Memory: piece, LKey: reservedLKey}}}
	}
	s.said(t)
	_, err := s.pair.PostSend(requests)
	require.NoError(t, err)
	const most = visitBytes + batchBytes + 2*maxPayload
	visits := 1
	for sent := 0; sent < pieces*(rules[kindWrite].size+maxPayload); visits++ {
		require.Less(t, len(s.spoken)-sent, most, "bytes of visit %d", visits)
		require.Greater(t, len(s.spoken), sent, "visit %d sends nothing of what is left", visits)
		sent = len(s.spoken)
		s.visit()
	}
	require.Greater(t, visits, pieces*maxPayload/most)
	require.Len(t, s.said(t), pieces)
	require.False(t, s.blocked.Load())
}

// Writes that are not signalled cost no acknowledgement, and one acknowledgement is for all requests before it.
func TestOneAcknowledgement(t *testing.T) {
	s := newStage(t)
	s.said(t)
	write := func(request uint32, flags uint8) []byte {
		return message(frame{kind: kindWrite, request: request, flags: flags, rkey: openKey, address: s.base, total: 8}, text(8))
	}
	for request := range uint32(50) {
		s.hear(s.script, write(request+1, 0))
	}
	require.Empty(t, s.said(t))
	s.hear(s.script, write(51, flagSignalled), write(52, flagSignalled), write(53, flagSignalled))
	said := s.said(t)
	require.Len(t, said, 1)
	require.Equal(t, kindAcknowledge, said[0].kind)
	require.EqualValues(t, 53, said[0].acked)
}

// The acknowledgement of a message goes with a frame that leaves before the next poll, or else in that poll. The
// acknowledgement of a write, which gets no response, leaves at once, also if only the message after it requests one.
func TestDelayedAcknowledgements(t *testing.T) {
	for _, c := range []struct {
		name          string
		kinds         []kind
		responds      bool
		without       Optimization
		sleeper       bool
		first, second []kind
	}{
		{"a message without a response", []kind{kindSend}, false, 0, false, nil, []kind{kindAcknowledge}},
		{"a message with a response", []kind{kindSend}, true, 0, false, nil, []kind{kindWrite}},
		{"a message, without delayed acknowledgements", []kind{kindSend}, true, DelayedAcknowledgements, false, []kind{kindAcknowledge}, []kind{kindWrite}},
		{"a write", []kind{kindWrite}, true, 0, false, []kind{kindAcknowledge}, []kind{kindWrite}},
		{"a message after a write", []kind{kindWrite, kindSend}, true, 0, false, []kind{kindAcknowledge}, []kind{kindWrite}},
		{"a message while a goroutine sleeps", []kind{kindSend}, true, 0, true, []kind{kindAcknowledge}, []kind{kindWrite}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.device.options.Without = c.without
			if c.sleeper {
				s.device.channel.Prepare()
			}
			kinds := func() (kinds []kind) {
				for _, f := range s.said(t) {
					require.EqualValues(t, len(c.kinds), f.acked)
					kinds = append(kinds, f.kind)
				}
				return kinds
			}
			s.device.aloneUntil = s.device.Now() + time.Minute
			s.device.drive() // makes the visits of a new connection
			require.Zero(t, s.device.wantedVisits.Load()+s.device.delayed.Load())
			for i, k := range c.kinds {
				f := frame{kind: k, request: uint32(i + 1), rkey: openKey, address: s.base, total: 8}
				if i == len(c.kinds)-1 {
					f.flags = flagSignalled
				}
				s.feed = append(s.feed, message(f, text(8))...)
			}
			s.device.drive()
			require.Equal(t, c.first, kinds())
			if c.responds {
				_, err := s.pair.PostSend([]verbs.SendRequest{{Opcode: verbs.OpRDMAWrite, Segments: []verbs.Segment{s.landed(512, 8)}}})
				require.NoError(t, err)
			}
			s.device.drive()
			require.Equal(t, c.second, kinds())
			require.Zero(t, s.device.wantedVisits.Load()+s.device.delayed.Load())
			s.device.drive()
			require.Empty(t, s.said(t))
		})
	}
}

// A write that has been acknowledged does not keep the acknowledgement of a message after it from being piggybacked.
func TestDelayAfterAcknowledgedWrite(t *testing.T) {
	s := newStage(t)
	s.device.aloneUntil = s.device.Now() + time.Minute
	s.device.drive()
	s.said(t)
	for i, k := range []kind{kindWrite, kindSend} {
		f := frame{kind: k, request: uint32(i + 1), flags: flagSignalled, rkey: openKey, address: s.base, total: 8}
		s.feed = message(f, text(8))
		s.device.drive()
		require.Len(t, s.said(t), 1-i)
	}
}

// A device that has received a message and is not polled any more acknowledges the message nevertheless.
func TestDelayEnds(t *testing.T) {
	near, far := openWith(t, Options{}), openWith(t, Options{})
	p, q := join(t, far, near)
	memory := make([]byte, 8)
	_, err := q.PostReceive([]verbs.ReceiveRequest{{Segments: []verbs.Segment{{Memory: memory, LKey: reservedLKey}}}})
	require.NoError(t, err)
	_, err = p.PostSend([]verbs.SendRequest{{Opcode: verbs.OpSend, Flags: verbs.Signalled, Segments: []verbs.Segment{{Memory: memory, LKey: reservedLKey}}}})
	require.NoError(t, err)
	received := func() bool {
		q.conn.mu.Lock()
		defer q.conn.mu.Unlock()
		return q.conn.in.carried == 1
	}
	for !received() {
		far.drive()
		near.drive()
	}
	var completions [1]verbs.Completion
	pollUntil(t, "the completion", func() bool { return p.sendCQ.Poll(completions[:]) == 1 }, far)
	require.Equal(t, verbs.StatusSuccess, completions[0].Status)
	require.Zero(t, near.delayed.Load())
}

// A burst of small frames is read by one call, whatever the kinds and so the sizes of their headers.
func TestOneReadForABurst(t *testing.T) {
	s := newStage(t)
	s.reads = 0
	request := uint32(0)
	for range 8 {
		for _, k := range []kind{kindWrite, kindPing, kindRead, kindFetchAdd, kindWrite, kindCompareSwap} {
			f := frame{kind: k, rkey: openKey, address: s.base, total: 8}
			payload := ""
			if k == kindWrite {
				payload = text(8)
			}
			if k != kindPing {
				request++
				f.request = request
			}
			s.feed = append(s.feed, message(f, payload)...)
		}
	}
	s.visit()
	require.NoError(t, s.pair.Err())
	require.Equal(t, request, s.in.carried)
	require.Equal(t, 1, s.reads)
}

// A payload that is longer than what is read ahead goes to its place from its first byte, but for what came with its
// header: the first payload of all, and a few bytes where frames with longer headers come, too.
func TestPlacedDirectly(t *testing.T) {
	const first = lookAhead
	for _, c := range []struct {
		name    string
		kinds   []kind
		without Optimization
		want    int
	}{
		{"writes", []kind{kindWrite, kindWrite, kindWrite}, 0, first - 36},
		{"sends", []kind{kindSend, kindSend, kindSend}, 0, first - 24},
		{"responses", []kind{kindReadResponse, kindReadResponse, kindReadResponse}, 0, first - 20},
		{"writes and responses", []kind{kindWrite, kindReadResponse, kindWrite, kindReadResponse}, 0, first - 36 + 2*(36-20)},
		{"writes without header reads", []kind{kindWrite, kindWrite, kindWrite}, HeaderReads, 3 * (first - 36)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newBare(t)
			s.device.options.Without = c.without
			memory := make([]byte, 4*lookAhead)
			r := s.region(memory, openKey, rights)
			landing := []verbs.Segment{{Memory: memory, LKey: reservedLKey}}
			var requested, responded uint32
			for range c.kinds {
				_, err := s.pair.PostReceive([]verbs.ReceiveRequest{{Segments: landing}})
				require.NoError(t, err)
				_, err = s.pair.PostSend([]verbs.SendRequest{{Opcode: verbs.OpRDMARead, Segments: landing}})
				require.NoError(t, err)
			}
			s.visit()
			headers := 0
			for _, k := range c.kinds {
				f := frame{kind: k, rkey: r.key, address: r.Remote().Address, total: uint32(len(memory))}
				number := &requested
				if k == kindReadResponse {
					number = &responded
				}
				*number++
				f.request = *number
				headers += f.size()
				s.feed = append(s.feed, message(f, text(len(memory)))...)
			}
			staged := &stagedBytes{script: s.script, connection: s.connection}
			s.stream = staged
			s.visit()
			require.NoError(t, s.pair.Err())
			require.Empty(t, s.feed)
			require.Zero(t, s.in.missing)
			require.Equal(t, c.want, staged.buffered-headers)
		})
	}
}

// stagedBytes counts what passes through the look-ahead.
type stagedBytes struct {
	*script
	connection *connection
	buffered   int
}

func (s *stagedBytes) read(into []byte) (int, error) {
	n, err := s.script.read(into)
	s.buffered += n
	return n, err
}

func (s *stagedBytes) readv(into [][]byte) (int, error) {
	n, err := s.script.readv(into)
	s.buffered += max(n-s.connection.in.missing, 0)
	return n, err
}

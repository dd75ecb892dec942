package tcp

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

const (
	openKey  = 0x1001 // of a region with all rights
	shutKey  = 0x1002 // of one with no remote rights
	rights   = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic
	areaSize = 4096
	// The regions lie in the middle of an area that is watched as a whole.
	from, to = 1024, 2048
)

// A stage is a connection whose peer is the test, with memory to aim at.
type stage struct {
	*bare
	area    []byte
	base    uint64
	landing []byte // of receives and reads
}

func newStage(t testing.TB) *stage {
	s := &stage{bare: newBare(t), area: make([]byte, areaSize), landing: make([]byte, areaSize)}
	s.base = s.region(s.area[from:to:to], openKey, rights).Remote().Address
	s.region(s.area[from:to:to], shutKey, verbs.LocalWrite)
	for i := range s.area {
		s.area[i], s.landing[i] = byte(i), byte(i*7)
	}
	// Receives, each of 64 bytes, and requests that wait for responses.
	for i := range uint64(4) {
		n, err := s.pair.PostReceive([]verbs.ReceiveRequest{{ID: 100 + i, Segments: []verbs.Segment{s.landed(int(i)*64, 64)}}})
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	n, err := s.pair.PostSend([]verbs.SendRequest{
		{ID: 1, Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled, Segments: []verbs.Segment{s.landed(512, 40)}},
		{ID: 2, Opcode: verbs.OpRDMARead, Flags: verbs.Signalled, Segments: []verbs.Segment{s.landed(600, 30), s.landed(700, 70)}},
		{ID: 3, Opcode: verbs.OpFetchAdd, Flags: verbs.Signalled, Segments: []verbs.Segment{s.landed(800, 8)}},
		{ID: 4, Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled, Segments: []verbs.Segment{s.landed(512, 3000)}},
	})
	require.NoError(t, err)
	require.Equal(t, 4, n)
	s.visit()
	s.said(t)
	return s
}

func (s *stage) landed(at, n int) verbs.Segment {
	return verbs.Segment{Memory: s.landing[at : at+n : at+n], LKey: reservedLKey}
}

// writable is where bytes of the peer may land.
var writable = [][2]int{{0, 256}, {600, 630}, {700, 770}, {800, 808}}

// expectUntouched fails the test if memory changed that the peer has no business with.
func (s *stage) expectUntouched(t testing.TB) {
	t.Helper()
	for i, b := range s.area {
		if (i < from || i >= to) && b != byte(i) {
			t.Fatalf("byte %d of the area changed, the region is from %d to %d", i, from, to)
		}
	}
	allowed := 0
	for i, b := range s.landing {
		for allowed < len(writable)-1 && i >= writable[allowed][1] {
			allowed++
		}
		if (i < writable[allowed][0] || i >= writable[allowed][1]) && b != byte(i*7) {
			t.Fatalf("byte %d of the landing changed", i)
		}
	}
}

func text(n int) string { return strings.Repeat("x", n) }

// A violation ends the connection, with an error that says so, and touches nothing.
func TestViolations(t *testing.T) {
	write := func(s *stage, request, total uint32) frame {
		return frame{kind: kindWrite, request: request, rkey: openKey, address: s.base, total: total}
	}
	for _, c := range []struct {
		name string
		say  func(s *stage) [][]byte
		text string
	}{
		{"another version", func(*stage) [][]byte { return [][]byte{bytes.Repeat([]byte{9}, commonSize)} }, "version 9"},
		{"a hello in the middle", func(*stage) [][]byte { return [][]byte{message(frame{kind: kindHello}, text(8))} }, "hello frame on a connection that is made"},
		{"a second accept", func(*stage) [][]byte { return [][]byte{message(frame{kind: kindAccept}, "")} }, "accept frame on a connection"},
		{"request 0", func(s *stage) [][]byte { return [][]byte{message(write(s, 0, 1), "x")} }, "write 0 after request 0"},
		{"request 2 first", func(s *stage) [][]byte { return [][]byte{message(write(s, 2, 1), "x")} }, "write 2 after request 0"},
		{"a request twice", func(s *stage) [][]byte {
			return [][]byte{message(write(s, 1, 1), "x"), message(write(s, 1, 1), "x")}
		}, "write 1 after request 1"},
		{"another request in the middle of one", func(s *stage) [][]byte {
			return [][]byte{message(write(s, 1, 9), "x"), message(write(s, 2, 9), "x")}
		}, "write 2 in the middle of write 1"},
		{"a read in the middle of a write", func(s *stage) [][]byte {
			return [][]byte{message(write(s, 1, 9), "x"), message(frame{kind: kindRead, request: 2, rkey: openKey, address: s.base, total: 8}, "")}
		}, "read 2 after request 1, complete: false"},
		{"an address that moves in the middle", func(s *stage) [][]byte {
			moved := write(s, 1, 9)
			moved.address += 64
			return [][]byte{message(write(s, 1, 9), "x"), message(moved, "x")}
		}, "in the middle"},
		{"more bytes than promised", func(s *stage) [][]byte { return [][]byte{message(write(s, 1, 3), "xxxx")} }, "4 bytes of write 1"},
		{"no bytes of some", func(s *stage) [][]byte { return [][]byte{message(write(s, 1, 3), "")} }, "0 bytes of write 1"},
		{"a message that is too long", func(s *stage) [][]byte { return [][]byte{message(write(s, 1, maxMessage+1), "x")} }, "at most 1073741824"},
		{"a read that is too long", func(s *stage) [][]byte {
			return [][]byte{message(frame{kind: kindRead, request: 1, rkey: openKey, address: s.base, total: maxMessage + 1}, "")}
		}, "at most 1073741824"},
		{"more sends than receives", func(*stage) [][]byte {
			var all [][]byte
			for i := range uint32(5) {
				all = append(all, message(frame{kind: kindSend, request: 1 + i, total: 1}, "x"))
			}
			return all
		}, "send 5 for which no receive was granted"},
		{"a write with immediate and no receive", func(s *stage) [][]byte {
			var all [][]byte
			for i := range uint32(5) {
				f := write(s, 1+i, 1)
				f.kind = kindWriteImmediate
				all = append(all, message(f, "x"))
			}
			return all
		}, "write with immediate 5 for which no receive was granted"},
		{"a response to nothing", func(*stage) [][]byte { return [][]byte{message(frame{kind: kindReadResponse, request: 9}, "x")} }, "request 9, which is not the one that is next"},
		{"a response out of order", func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindAtomicResponse, request: 3}, "")}
		}, "request 3, which is not the one that is next"},
		{"a response of another kind", func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindAtomicResponse, request: 2}, "")}
		}, "which has opcode 4"},
		{"a response that is too long", func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindReadResponse, request: 2}, text(101))}
		}, "101 bytes of the response to read 2"},
		{"a response that goes on and on", func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindReadResponse, request: 2}, text(60)), message(frame{kind: kindReadResponse, request: 2}, text(41))}
		}, "of which 40 of 100 are missing"},
		{"a response without bytes", func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindReadResponse, request: 2}, "")}
		}, "0 bytes of the response"},
		{"an acknowledgement of what was not sent", func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindAcknowledge, acked: 5}, "")}
		}, "request 5 acknowledged, the last that was sent is 4"},
		{"an acknowledgement that is taken back", func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindAcknowledge, acked: 1}, ""), message(frame{kind: kindAcknowledge}, "")}
		}, "request 0 acknowledged"},
		{"receives that are taken back", func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindAcknowledge, granted: 5}, ""), message(frame{kind: kindAcknowledge, granted: 4}, "")}
		}, "4 receives granted after 5"},
		{"more receives than can be", func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindAcknowledge, granted: maxDepth + 1}, "")}
		}, "1048577 receives granted"},
		{"a rejection of nothing", func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindRequestRejection, request: 9, operand: uint64(verbs.StatusRemoteAccess)}, "")}
		}, "request 9 rejected"},
		{"a rejection that is a success", func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindRequestRejection, request: 1}, "")}
		}, "rejected with 0"},
		{"a rejection with a status that is none", func(*stage) [][]byte {
			return [][]byte{message(frame{kind: kindRequestRejection, request: 1, operand: 1<<32 + 4}, "")}
		}, "rejected with 4294967300"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.hear(s.script, c.say(s)...)
			require.ErrorIs(t, s.pair.Err(), ErrProtocol)
			require.ErrorContains(t, s.pair.Err(), c.text)
			require.True(t, s.closed, "the connection is not closed")
			s.expectUntouched(t)
		})
	}
}

// More requests than may be unanswered, from a peer that does not read the responses.
func TestTooManyRequests(t *testing.T) {
	s := newStage(t)
	s.full = true
	for i := range uint32(maxReads + 20) {
		s.feed = append(s.feed, message(frame{kind: kindRead, request: 1 + i, rkey: openKey, address: s.base, total: 1000}, "")...)
	}
	s.hear(s.script)
	require.ErrorIs(t, s.pair.Err(), ErrProtocol)
	require.ErrorContains(t, s.pair.Err(), "64 reads and atomics are unanswered")
}

// A request that is not allowed is rejected after the responses to those before it.
func TestRequestRejections(t *testing.T) {
	for _, c := range []struct {
		name   string
		f      frame
		offset uint64
		status verbs.Status
	}{
		{"write: another key", frame{kind: kindWrite, rkey: 77, total: 1}, 0, verbs.StatusRemoteAccess},
		{"write: no right", frame{kind: kindWrite, rkey: shutKey, total: 1}, 0, verbs.StatusRemoteAccess},
		{"write: the reserved local key", frame{kind: kindWrite, rkey: reservedLKey, total: 1}, 0, verbs.StatusRemoteAccess},
		{"write: one byte too far", frame{kind: kindWrite, rkey: openKey, total: 1}, to - from, verbs.StatusRemoteAccess},
		{"write: one byte before", frame{kind: kindWrite, rkey: openKey, total: 1}, ^uint64(0), verbs.StatusRemoteAccess},
		{"write: longer than the region", frame{kind: kindWrite, rkey: openKey, total: to - from + 1}, 0, verbs.StatusRemoteAccess},
		{"read: another key", frame{kind: kindRead, rkey: 77, total: 1}, 0, verbs.StatusRemoteAccess},
		{"read: too far", frame{kind: kindRead, rkey: openKey, total: 8}, to - from - 7, verbs.StatusRemoteAccess},
		{"atomic: no right", frame{kind: kindFetchAdd, rkey: shutKey}, 0, verbs.StatusRemoteAccess},
		{"atomic: too far", frame{kind: kindCompareSwap, rkey: openKey}, to - from, verbs.StatusRemoteAccess},
		{"atomic: between words", frame{kind: kindFetchAdd, rkey: openKey}, 4, verbs.StatusRemoteInvalid},
		{"send: too long", frame{kind: kindSend, total: 65}, 0, verbs.StatusRemoteInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			c.f.request = 3
			payload := ""
			if c.f.kind != kindRead && c.f.kind < kindFetchAdd {
				payload = "x"
			}
			if c.f.kind != kindSend {
				c.f.address = s.base + c.offset
			}
			read := frame{kind: kindRead, request: 1, rkey: openKey, address: s.base, total: 16}
			write := frame{kind: kindWrite, request: 2, rkey: openKey, address: s.base + 64, total: 1}
			late := frame{kind: kindWrite, request: 4, rkey: openKey, address: s.base + 128, total: 1}
			s.hear(s.script, message(read, ""), message(write, "y"), message(c.f, payload), message(late, "z"))
			said := s.said(t)
			require.Len(t, said, 2)
			require.Equal(t, kindReadResponse, said[0].kind)
			rejection := frame{kind: kindRequestRejection, request: 3, acked: 2, granted: 4, operand: uint64(c.status)}
			require.Equal(t, rejection, said[1])
			require.Equal(t, verbs.StateError, s.pair.State())
			require.ErrorIs(t, s.pair.Err(), c.status)
			require.Equal(t, byte('y'), s.area[from+64])
			s.area[from+64] = byte((from + 64) % 256)
			for i := range s.area {
				require.Equal(t, byte(i), s.area[i], "byte %d", i)
			}
			// It then waits for the peer to hang up, so that the rejection is not lost.
			require.False(t, s.closed)
			s.ended = true
			s.hear(s.script)
			require.True(t, s.closed)
		})
	}
}

// After Deregister nothing of a write that is on its way is placed.
func TestDeregisterInTheMiddleOfAWrite(t *testing.T) {
	s := newStage(t)
	r := s.device.regions.find(openKey)
	write := message(frame{kind: kindWrite, request: 1, rkey: openKey, address: s.base, total: 200}, text(200))
	cut := len(write) - 150
	s.hear(s.script, write[:cut])
	require.Equal(t, byte('x'), s.area[from+49])
	require.NoError(t, r.Deregister())
	before := bytes.Clone(s.area)
	s.hear(s.script, write[cut:])
	require.Equal(t, before, s.area)
	require.ErrorIs(t, s.pair.Err(), verbs.StatusRemoteAccess)
	said := s.said(t)
	require.Equal(t, kindRequestRejection, said[len(said)-1].kind)
}

// A response arrives between the frames of a write: the peer sends both in turn.
func TestResponseInTheMiddleOfAWrite(t *testing.T) {
	s := newStage(t)
	f := frame{kind: kindWrite, request: 1, rkey: openKey, address: s.base, total: to - from}
	s.hear(s.script,
		message(f, text(50)),
		message(frame{kind: kindReadResponse, request: 2}, text(100)),
		message(f, text(to-from-50)),
	)
	require.NoError(t, s.pair.Err())
	require.Equal(t, text(to-from), string(s.area[from:to]))
	s.expectUntouched(t)
}

// After Deregister nothing leaves any more of a read whose response is in a batch.
func TestDeregisterInTheMiddleOfARead(t *testing.T) {
	s := newStage(t)
	large := bytes.Repeat([]byte("secret"), 1<<20)
	r := s.region(large, 0x2001, rights)
	s.full = true
	s.hear(s.script, message(frame{kind: kindRead, request: 1, rkey: r.key, address: r.Remote().Address, total: uint32(len(large))}, ""))
	require.NoError(t, r.Deregister())
	s.full = false
	s.visit()
	require.NotContains(t, string(s.spoken), "secret")
	require.ErrorIs(t, s.pair.Err(), errWithdrawn)
	require.True(t, s.closed)
}

// A read sees what was before the atomics behind it, although they are executed first.
func TestReadsBeforeAtomics(t *testing.T) {
	s := newStage(t)
	want := bytes.Clone(s.area[from : from+256])
	s.full = true
	ask := func(request uint32, k kind, at, operand uint64) []byte {
		return message(frame{kind: k, request: request, rkey: openKey, address: s.base + at, total: uint32(operand), operand: operand, compare: operand}, "")
	}
	// The first response is in a batch already, and holds the others up.
	s.hear(s.script, ask(1, kindRead, 512, 1), ask(2, kindRead, 3, 100), ask(3, kindFetchAdd, 8, 1), ask(4, kindFetchAdd, 8, 1),
		ask(5, kindFetchAdd, 96, 1), ask(6, kindFetchAdd, 0, 1), ask(7, kindRead, 0, 256), ask(8, kindFetchAdd, 248, 1))
	s.full = false
	s.visit()
	var first, second []byte
	for len(s.spoken) > 0 {
		f, payload := s.next(t)
		switch f.request {
		case 2:
			first = append(first, payload...)
		case 7:
			second = append(second, payload...)
		}
	}
	require.Equal(t, want[3:103], first)
	add := func(at int, n uint64) {
		binary.NativeEndian.PutUint64(want[at:], binary.NativeEndian.Uint64(want[at:])+n)
	}
	add(8, 2)
	add(96, 1)
	add(0, 1)
	require.Equal(t, want, second)
	add(248, 1)
	require.Equal(t, want, s.area[from:from+256])
}

// The response to a read that waits for room has the memory as it was before the atomic after it.
func TestReadInABatchBeforeAtomics(t *testing.T) {
	s := newStage(t)
	long := make([]byte, 4*smallPayload)
	r := s.region(long, 0x2001, rights)
	s.full = true
	read := frame{kind: kindRead, request: 1, rkey: r.key, address: r.Remote().Address, total: uint32(len(long))}
	s.hear(s.script, message(read, ""))
	s.hear(s.script, message(frame{kind: kindFetchAdd, request: 2, rkey: r.key, address: read.address + 8, operand: 7}, ""))
	require.EqualValues(t, 7, long[8])
	s.full = false
	s.visit()
	f, payload := s.next(t)
	require.EqualValues(t, kindReadResponse, f.kind)
	require.Equal(t, make([]byte, len(long)), payload)
}

// What a header promises costs nothing until it comes.
func TestNothingIsAllocatedForAPromise(t *testing.T) {
	s := newStage(t)
	large := make([]byte, maxPayload*2)
	r := s.region(large, 0x2001, rights)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f := frame{kind: kindWrite, request: 1, rkey: r.key, address: r.Remote().Address, total: uint32(len(large)), length: maxPayload}
	header := make([]byte, f.size())
	f.encode(header)
	s.hear(s.script, header)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10))
	require.Equal(t, verbs.StateReady, s.pair.State())
}

// The order of completions is that of posting, whatever order responses arrive in.
func TestCompletionsInOrder(t *testing.T) {
	s := newStage(t)
	s.hear(s.script, message(frame{kind: kindReadResponse, request: 2, acked: 1}, text(100)))
	require.Equal(t, []verbs.Completion{
		{ID: 1, QueuePair: s.pair.number, Opcode: verbs.OpRDMAWrite}, {ID: 2, QueuePair: s.pair.number, Opcode: verbs.OpRDMARead},
	}, s.completions())
	s.hear(s.script, message(frame{kind: kindAcknowledge, acked: 4}, ""))
	require.Empty(t, s.completions(), "request 4 completed before request 3")
	s.hear(s.script, message(frame{kind: kindAtomicResponse, request: 3, acked: 4, operand: 5}, ""))
	require.Equal(t, []verbs.Completion{
		{ID: 3, QueuePair: s.pair.number, Opcode: verbs.OpFetchAdd}, {ID: 4, QueuePair: s.pair.number, Opcode: verbs.OpRDMAWrite},
	}, s.completions())
	require.EqualValues(t, 5, binary.NativeEndian.Uint64(s.landing[800:]))
	s.expectUntouched(t)
}

// What is on its way when a connection ends leaves as it was, although its memory is the
// program's again, and what is owed follows it.
func TestLastOutputIsACopy(t *testing.T) {
	for name, end := range map[string]func(s *bare){
		"a rejection": func(s *bare) {
			s.hear(s.script, message(frame{kind: kindWrite, request: 1, rkey: 77, total: 1}, "x"))
		},
		"a queue that overflows": func(s *bare) {
			for s.queue.held.Push(&verbs.Completion{}) {
			}
			s.hear(s.script, message(frame{kind: kindSend, request: 1}, ""))
		},
		"Close": func(s *bare) { require.NoError(t, s.pair.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newBare(t)
			_, err := s.pair.PostReceive([]verbs.ReceiveRequest{{}})
			require.NoError(t, err)
			s.visit()
			s.said(t)
			s.room = 100
			memory := []byte(text(3000))
			_, err = s.pair.PostSend([]verbs.SendRequest{
				{Opcode: verbs.OpRDMAWrite, Segments: []verbs.Segment{{Memory: memory, LKey: reservedLKey}}},
				{Opcode: verbs.OpRDMAWrite, Segments: []verbs.Segment{{Memory: memory[:9], LKey: reservedLKey}}},
			})
			require.NoError(t, err)
			require.Len(t, s.spoken, 100)
			pair := s.pair
			end(s)
			require.Equal(t, verbs.StateError, pair.State())
			clear(memory)
			s.room = 0
			s.visit()
			f, payload := s.next(t)
			require.Equal(t, kindWrite, f.kind)
			require.Equal(t, text(3000), string(payload))
			said := s.said(t)
			require.Len(t, said, 2)
			require.Equal(t, kindWrite, said[0].kind)
			if name == "a rejection" {
				require.Equal(t, kindRequestRejection, said[1].kind)
			} else {
				require.Equal(t, kindBye, said[1].kind)
			}
		})
	}
}

// A read whose region ends before its response is begun is rejected, after the response before it.
func TestDeregisterBeforeARead(t *testing.T) {
	s := newStage(t)
	large := s.region(make([]byte, 2*maxPayload), 0x2001, rights)
	s.full = true
	s.hear(s.script, message(frame{kind: kindRead, request: 1, rkey: large.key, address: large.Remote().Address, total: 2 * maxPayload}, ""),
		message(frame{kind: kindRead, request: 2, rkey: openKey, address: s.base, total: 8}, ""),
		message(frame{kind: kindRead, request: 3, rkey: large.key, address: large.Remote().Address, total: 8}, ""))
	require.NoError(t, s.device.regions.find(openKey).Deregister())
	s.full = false
	s.visit()
	said := s.said(t)
	require.Len(t, said, 3)
	require.Equal(t, []uint32{1, 1, 2}, []uint32{said[0].request, said[1].request, said[2].request})
	require.Equal(t, kindRequestRejection, said[2].kind)
	require.EqualValues(t, verbs.StatusRemoteAccess, said[2].operand)
}

// Responses that are in a batch leave before the rejection of a later request.
func TestResponsesBeforeARejection(t *testing.T) {
	s := newStage(t)
	gone := s.region(make([]byte, 8), 0x2001, rights)
	s.full = true
	_, err := s.pair.PostSend([]verbs.SendRequest{{Opcode: verbs.OpRDMAWrite}})
	require.NoError(t, err)
	s.hear(s.script, message(frame{kind: kindFetchAdd, request: 1, rkey: openKey, address: s.base, operand: 1}, ""),
		message(frame{kind: kindRead, request: 2, rkey: gone.key, address: gone.Remote().Address, total: 8}, ""))
	require.NoError(t, gone.Deregister())
	s.full = false
	s.visit()
	said := s.said(t)
	require.Len(t, said, 3)
	require.Equal(t, []kind{kindWrite, kindAtomicResponse, kindRequestRejection}, []kind{said[0].kind, said[1].kind, said[2].kind})
}

// A pong and a response that are in a batch leave before the bye of a queue pair that fails while the batch is made.
func TestResponsesBeforeABye(t *testing.T) {
	for name, overflow := range map[string]bool{"a request of memory without a key": false, "a completion queue that is full": true} {
		t.Run(name, func(t *testing.T) {
			s := newBare(t)
			r := s.region(make([]byte, 8), openKey, rights)
			s.said(t)
			s.full = true
			for _, segments := range [][]verbs.Segment{nil, {{Memory: make([]byte, 8), LKey: 77}}} {
				_, err := s.pair.PostSend([]verbs.SendRequest{{Opcode: verbs.OpRDMAWrite, Segments: segments}})
				require.NoError(t, err)
			}
			s.hear(s.script, message(frame{kind: kindPing, acked: 1}, ""),
				message(frame{kind: kindFetchAdd, request: 1, acked: 1, rkey: openKey, address: r.Remote().Address, operand: 1}, ""))
			want := error(verbs.StatusLocalProtection)
			if overflow {
				want = errOverflow
				for s.queue.held.Push(&verbs.Completion{}) {
				}
			}
			s.full = false
			s.visit()
			require.ErrorIs(t, s.pair.Err(), want)
			var kinds []kind
			for _, f := range s.said(t) {
				kinds = append(kinds, f.kind)
			}
			require.Equal(t, []kind{kindWrite, kindPong, kindAtomicResponse, kindBye}, kinds)
		})
	}
}

// A request that fails on this side does so behind those before it, of which the peer
// is asked.
func TestLocalFailureBehindOthers(t *testing.T) {
	s := newBare(t)
	s.said(t)
	memory := make([]byte, 8)
	_, err := s.pair.PostSend([]verbs.SendRequest{
		{ID: 1, Opcode: verbs.OpRDMAWrite, Segments: []verbs.Segment{{Memory: memory, LKey: reservedLKey}}},
		{ID: 2, Opcode: verbs.OpRDMAWrite, Segments: []verbs.Segment{{Memory: memory, LKey: 77}}},
		{ID: 3, Opcode: verbs.OpRDMAWrite, Segments: []verbs.Segment{{Memory: memory, LKey: reservedLKey}}},
	})
	require.NoError(t, err)
	said := s.said(t)
	require.Len(t, said, 2)
	require.Equal(t, []kind{kindWrite, kindPing}, []kind{said[0].kind, said[1].kind})
	require.Empty(t, s.completions())
	s.hear(s.script, message(frame{kind: kindPong, acked: 1}, ""))
	completions := s.completions()
	require.Len(t, completions, 2, "%+v", completions)
	require.Equal(t, verbs.Completion{ID: 2, QueuePair: s.pair.number, Status: verbs.StatusLocalProtection, Opcode: verbs.OpRDMAWrite}, completions[0])
	require.Equal(t, verbs.StatusFlushed, completions[1].Status)
	require.Equal(t, kindBye, s.said(t)[0].kind)
}

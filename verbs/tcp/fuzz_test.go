package tcp

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/verbs"
)

// aim makes a script of a fuzzer's bytes: those that are headers of requests to memory
// have their address counted from the region's, which is another in each process. The
// rest stays as it is.
func aim(said []byte, base uint64) []byte {
	said = append([]byte(nil), said...)
	for rest := said; ; {
		var f frame
		size, err := f.decode(rest)
		if err != nil || size == 0 {
			break
		}
		if _, has := f.layout(); has&fieldRemote != 0 {
			f.address += base
			f.encode(rest)
		}
		rest = rest[min(len(rest), size+int(f.length)):]
	}
	return said
}

// mostAllocated is what a connection may allocate beside a few bytes for each that it takes. It leaves room for what
// other goroutines of the process allocate meanwhile.
const mostAllocated = 256 << 10

// FuzzConnection plays a peer that says anything to a connection that is made. Nothing
// outside of what it may write changes, every request and receive completes at most
// once, and if the connection ends all have. What is allocated is bounded by what the peer says.
func FuzzConnection(f *testing.F) {
	join := func(messages ...[]byte) (all []byte) {
		for _, m := range messages {
			all = append(all, m...)
		}
		return all
	}
	write := frame{kind: kindWrite, flags: flagSignalled, request: 1, rkey: openKey, total: 100}
	immediate := frame{kind: kindWriteImmediate, request: 2, rkey: openKey, address: 8, total: 3, immediate: 7}
	send := frame{kind: kindSend, flags: flagImmediate | flagSignalled, request: 3, total: 64, immediate: 9}
	read := frame{kind: kindRead, request: 4, rkey: openKey, address: 1, total: 1023}
	add := frame{kind: kindFetchAdd, request: 5, rkey: openKey, address: 64, operand: 1}
	swap := frame{kind: kindCompareSwap, request: 6, rkey: openKey, address: 1016, operand: 1, compare: 2}
	for _, seed := range [][]byte{
		join(message(write, text(40)), message(write, text(60)), message(immediate, "abc"), message(send, text(64)), message(read, ""), message(add, ""), message(swap, "")),
		join(message(frame{kind: kindReadResponse, request: 2, acked: 1}, text(99)), message(frame{kind: kindReadResponse, request: 2}, "x"), message(frame{kind: kindAtomicResponse, request: 3, operand: 4}, ""), message(frame{kind: kindAcknowledge, acked: 4, granted: 3}, "")),
		join(message(frame{kind: kindPing}, ""), message(frame{kind: kindPong, acked: 4}, ""), message(frame{kind: kindRequestRejection, acked: 1, request: 2, operand: 4}, "")),
		join(message(frame{kind: kindAcknowledge, acked: 1}, ""), message(frame{kind: kindBye, operand: byeClosed}, "")),
		message(frame{kind: kindWrite, request: 1, rkey: openKey, address: 1000, total: 100}, text(100)),
		message(frame{kind: kindWrite, request: 1, rkey: shutKey, total: 100}, text(100)),
		message(frame{kind: kindSend, request: 1, total: 65}, text(65)),
		message(frame{kind: kindFetchAdd, request: 1, rkey: openKey, address: 3}, ""),
	} {
		f.Add(seed, uint8(0), false)
		f.Add(seed, uint8(7), true)
	}
	f.Fuzz(func(t *testing.T, said []byte, piece uint8, full bool) {
		if len(said) > 1<<16 {
			return
		}
		s := newStage(t)
		s.piece, s.full = int(piece), full
		script := aim(said, s.base)
		// The stage keeps what the connection answers, which is memory of the region.
		s.spoken = make([]byte, 0, 32*len(script)+4<<10)
		require.LessOrEqual(t, allocs.Of(func() {
			s.hear(s.script, script)
			s.ended, s.full = true, false
			s.visit()
		}), mostAllocated+8*len(script))
		s.expectUntouched(t)
		require.Equal(t, verbs.StateError, s.pair.State())
		require.Error(t, s.pair.Err())
		seen := map[uint64]int{}
		for _, c := range s.completions() {
			seen[c.ID]++
		}
		for _, id := range []uint64{1, 2, 3, 4, 100, 101, 102, 103} {
			require.Equal(t, 1, seen[id], "completions of request %d", id)
		}
		require.Len(t, seen, 8)
	})
}

// A helloStream is a peer that says what it has, and hears nothing.
type helloStream struct{ *bytes.Reader }

func (helloStream) Write(b []byte) (int, error) { return len(b), nil }

// FuzzHello has a peer that holds the key say anything in the place of its hello.
func FuzzHello(f *testing.F) {
	f.Add(message(frame{kind: kindHello}, text(identitySize+20)))
	f.Add(message(frame{kind: kindHello}, ""))
	f.Add(message(frame{kind: kindSend}, text(maxHelloPayload+1)))
	f.Add([]byte("RMA1"))
	f.Fuzz(func(t *testing.T, said []byte) {
		hear := func() ([]byte, error) { return readHello(nil, helloStream{bytes.NewReader(said)}) }
		allocs.AtMost(t, maxHelloPayload+4<<10, func() { _, _ = hear() })
		payload, err := hear()
		if err == nil {
			require.Equal(t, said[paddedSize:][:len(payload)], payload)
			require.GreaterOrEqual(t, len(payload), identitySize)
			require.LessOrEqual(t, len(payload), maxHelloPayload)
		}
	})
}

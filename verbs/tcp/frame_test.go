package tcp

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
)

// full is a frame of a kind with a value in each field.
func full(k kind, flags byte) frame {
	return frame{
		kind: k, flags: flags, length: 0x00000102, acked: 0x14131211, granted: 0x24232221, request: 0x34333231, total: 0x44434241,
		immediate: 0x54535251, rkey: 0x64636261, address: 0x7877767574737271, operand: 0x8887868584838281, compare: 0x9897969594939291,
	}
}

// Each field has its place, which never changes within a version.
func TestFrameLayout(t *testing.T) {
	const request, total, immediate, rkey, address, operand, compare = 0x31, 0x41, 0x51, 0x61, 0x71, 0x81, 0x91
	for _, c := range []struct {
		kind  kind
		flags byte
		// fields are the first bytes of those that follow the ones that every header has.
		fields []byte
		size   int
	}{
		{kindHello, 0, nil, 48},
		{kindAccept, 0, nil, 16},
		{kindReject, 0, nil, 48},
		{kindSend, flagSignalled, []byte{request, total}, 24},
		{kindSend, flagImmediate, []byte{request, total, immediate}, 28},
		{kindWrite, 0, []byte{request, total, rkey, address}, 36},
		{kindWriteImmediate, 0, []byte{request, total, immediate, rkey, address}, 40},
		{kindRead, 0, []byte{request, total, rkey, address}, 36},
		{kindFetchAdd, 0, []byte{request, rkey, address, operand}, 40},
		{kindCompareSwap, 0, []byte{request, rkey, address, operand, compare}, 48},
		{kindReadResponse, 0, []byte{request}, 20},
		{kindAtomicResponse, 0, []byte{request, operand}, 28},
		{kindAcknowledge, 0, nil, 16},
		{kindRequestRejection, 0, []byte{request, operand}, 28},
		{kindPing, 0, nil, 16},
		{kindPong, 0, nil, 16},
		{kindBye, 0, []byte{operand}, 24},
	} {
		want := []byte{version, byte(c.kind), c.flags, 0, 2, 1, 0, 0, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24}
		for _, first := range c.fields {
			length := byte(4)
			if first >= address {
				length = 8
			}
			for i := range length {
				want = append(want, first+i)
			}
		}
		want = append(want, make([]byte, c.size-len(want))...)
		f := full(c.kind, c.flags)
		require.Equal(t, c.size, f.size(), f.kind)
		require.LessOrEqual(t, c.size, maxHeader, f.kind)
		got := bytes.Repeat([]byte{0xee}, c.size)
		f.encode(got)
		require.Equal(t, want, got, f.kind)
	}
}

func TestFrameNumbersOfKinds(t *testing.T) {
	require.EqualValues(t, 1, kindHello)
	require.EqualValues(t, 16, kindBye)
	for k := kindHello; k < kinds; k++ {
		require.NotEmpty(t, rules[k].name, "kind %d", k)
	}
}

// A header that has not all arrived decodes to nothing, until its last byte has.
func TestFrameInPieces(t *testing.T) {
	for k := kindHello; k < kinds; k++ {
		for flags := byte(0); flags <= rules[k].flags; flags++ {
			if flags&^rules[k].flags != 0 {
				continue
			}
			f := full(k, flags)
			f.length = rules[k].maxLength
			header := make([]byte, f.size())
			f.encode(header)
			for n := range header {
				size, err := new(frame).decode(header[:n:n])
				require.NoError(t, err, "%d bytes of a %v header", n, k)
				require.Zero(t, size, "%d bytes of a %v header", n, k)
			}
			size, err := new(frame).decode(append(header, 0xff))
			require.NoError(t, err)
			require.Equal(t, len(header), size, k)
		}
	}
}

func TestFrameThatIsMalformed(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(header []byte)
		text  string
	}{
		{"version 1", func(h []byte) { h[0] = 1 }, "version 1, this side speaks 2"},
		{"version 3", func(h []byte) { h[0] = 3 }, "version 3, this side speaks 2"},
		{"kind 0", func(h []byte) { h[1] = 0 }, "kind 0, known are 1 to 16"},
		{"kind 17", func(h []byte) { h[1] = 17 }, "kind 17, known are 1 to 16"},
		{"an unknown flag", func(h []byte) { h[2] = 0x80 }, "flags 0x80 and 0x0, allowed are 0x3 and 0"},
		{"a flag of another kind", func(h []byte) { h[1], h[2] = byte(kindWrite), flagImmediate }, "flags 0x2 and 0x0, allowed are 0x1 and 0"},
		{"a byte that must be zero", func(h []byte) { h[3] = 1 }, "flags 0x1 and 0x1"},
		{"a payload that is too long", func(h []byte) { binary.LittleEndian.PutUint32(h[4:], maxPayload+1) }, "a payload of 262145 bytes, at most 262144"},
		{"a payload of 4 GiB", func(h []byte) { binary.LittleEndian.PutUint32(h[4:], 1<<32-1) }, "a payload of 4294967295 bytes"},
		{"a payload of a kind without", func(h []byte) { h[1], h[2], h[4] = byte(kindPing), 0, 1 }, "ping frame with a payload of 1 bytes, at most 0"},
		{"a hello that is too long", func(h []byte) { h[1], h[2], h[4] = byte(kindHello), 0, maxHelloPayload+1 }, "at most 204"},
	} {
		// What every header has is enough to see it.
		for _, length := range []int{commonSize, rules[kindSend].size} {
			header := make([]byte, rules[kindSend].size)
			(&frame{kind: kindSend, flags: flagSignalled, length: 5}).encode(header)
			c.spoil(header)
			_, err := new(frame).decode(header[:length])
			require.ErrorIs(t, err, ErrProtocol, c.name)
			require.ErrorContains(t, err, c.text, c.name)
		}
	}
	for _, k := range []kind{kindHello, kindReject} {
		header := make([]byte, paddedSize)
		(&frame{kind: k}).encode(header)
		header[paddedSize-1] = 1
		_, err := new(frame).decode(header)
		require.ErrorIs(t, err, ErrProtocol)
		require.ErrorContains(t, err, k.String()+" frame whose padding is not zero")
	}
}

// FuzzFrame: what decodes is what encode makes, and nothing is taken that rules forbid.
func FuzzFrame(f *testing.F) {
	for k := kindHello; k < kinds; k++ {
		seed := frame{kind: k, flags: rules[k].flags, length: rules[k].maxLength, request: 7, operand: 9}
		header := make([]byte, seed.size())
		seed.encode(header)
		f.Add(header)
		f.Add(header[:len(header)-1])
	}
	f.Add(bytes.Repeat([]byte{0xff}, maxHeader))
	f.Fuzz(func(t *testing.T, header []byte) {
		allocs.AtMost(t, 1<<10, func() { _, _ = new(frame).decode(header) })
		var decoded frame
		size, err := decoded.decode(header)
		if err != nil {
			require.Zero(t, size)
			require.ErrorIs(t, err, ErrProtocol)
			return
		}
		if size == 0 {
			require.True(t, len(header) < commonSize || len(header) < decoded.size())
			return
		}
		require.LessOrEqual(t, size, maxHeader)
		require.LessOrEqual(t, int(decoded.length), maxPayload)
		require.Equal(t, size, decoded.size())
		again := make([]byte, size)
		decoded.encode(again)
		require.Equal(t, header[:size], again)
	})
}

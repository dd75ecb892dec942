package tcp

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
)

// Each field has its place, which never changes within a version.
func TestFrameLayout(t *testing.T) {
	f := frame{
		kind: kindSend, flags: flagSignalled | flagImmediate, length: 0x04030201, request: 0x14131211, acked: 0x24232221,
		granted: 0x34333231, rkey: 0x44434241, address: 0x5857565554535251, operand: 0x6867666564636261, compare: 0x7877767574737271,
	}
	want := []byte{version, byte(kindSend), 3, 0, 1, 2, 3, 4}
	for _, first := range []byte{0x11, 0x21, 0x31, 0x41} {
		want = append(want, first, first+1, first+2, first+3)
	}
	for _, first := range []byte{0x51, 0x61, 0x71} {
		for i := range byte(8) {
			want = append(want, first+i)
		}
	}
	var got [headerSize]byte
	f.encode(got[:])
	require.Equal(t, want, got[:])
}

func TestFrameNumbersOfKinds(t *testing.T) {
	require.EqualValues(t, 1, kindHello)
	require.EqualValues(t, 16, kindBye)
	for k := kindHello; k < kinds; k++ {
		require.NotEmpty(t, rules[k].name, "kind %d", k)
	}
}

func TestFrameThatIsMalformed(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(header []byte)
		text  string
	}{
		{"version 0", func(h []byte) { h[0] = 0 }, "version 0, this side speaks 1"},
		{"version 2", func(h []byte) { h[0] = 2 }, "version 2, this side speaks 1"},
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
		var header [headerSize]byte
		(&frame{kind: kindSend, flags: flagSignalled, length: 5}).encode(header[:])
		c.spoil(header[:])
		var f frame
		err := f.decode(header[:])
		require.ErrorIs(t, err, ErrProtocol, c.name)
		require.ErrorContains(t, err, c.text, c.name)
	}
}

// FuzzFrame: what decodes is what encode makes, and nothing is taken that rules forbid.
func FuzzFrame(f *testing.F) {
	for k := kindHello; k < kinds; k++ {
		var header [headerSize]byte
		(&frame{kind: k, flags: rules[k].flags, length: rules[k].maxLength, request: 7, operand: 9}).encode(header[:])
		f.Add(header[:])
	}
	f.Add(bytes.Repeat([]byte{0xff}, headerSize))
	f.Fuzz(func(t *testing.T, header []byte) {
		if len(header) < headerSize {
			return
		}
		allocs.AtMost(t, 1<<10, func() { _ = new(frame).decode(header) })
		var decoded frame
		if err := decoded.decode(header); err != nil {
			require.ErrorIs(t, err, ErrProtocol)
			return
		}
		require.LessOrEqual(t, int(decoded.length), maxPayload)
		var again [headerSize]byte
		decoded.encode(again[:])
		require.Equal(t, header[:headerSize], again[:])
	})
}

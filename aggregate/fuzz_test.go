package aggregate_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/allocs"
)

// FuzzPacket takes any bytes apart that Check accepts. They read the same once packed
// again, which is as long at most, and packing that again gives the same bytes. To take them apart allocates nothing but
// an error.
func FuzzPacket(f *testing.F) {
	every := mixed()
	f.Add(pack(f, every))
	for i := range every {
		f.Add(pack(f, every[i:i+1]))
	}
	f.Add([]byte{byte(aggregate.Put), 0, 0, 0, 8, 0, 0, 0})
	f.Add([]byte{byte(aggregate.Get), 0, 0, 0, 0xff, 0xff, 1, 0})
	f.Add([]byte{byte(aggregate.Fetch), byte(reduce.NoOp), byte(reduce.Complex128), 0, 16, 0, 2, 0})
	f.Fuzz(func(t *testing.T, packet []byte) {
		allocs.AtMost(t, 2<<10, func() { takeApart(packet) })
		response, err := aggregate.Check(packet)
		if err != nil {
			require.ErrorIs(t, err, aggregate.ErrPacket)
			return
		}
		given := slices.Clone(packet)
		all, _ := read(packet)
		require.Equal(t, responseBytes(all), response)
		for _, o := range all {
			require.Len(t, o.operand, operandBytes(o.shape))
			require.True(t, exists(o.shape), "%+v", o.shape)
		}
		require.LessOrEqual(t, packed(all), len(packet))

		again := pack(t, all)
		requireReads(t, again, all)
		require.Equal(t, again, pack(t, all))
		require.Equal(t, given, packet)
	})
}

// takeApart goes through all operations of a packet that Check accepts.
func takeApart(packet []byte) {
	if _, err := aggregate.Check(packet); err != nil {
		return
	}
	reader := aggregate.NewReader(packet)
	for run, some := reader.Next(); some; run, some = reader.Next() {
		for i := range run.Count {
			run.Operation(i)
		}
	}
}

// requireReads has a packet be whole, and hold operations.
func requireReads(t *testing.T, packet []byte, want []operation) {
	t.Helper()
	response, err := aggregate.Check(packet)
	require.NoError(t, err)
	require.Equal(t, responseBytes(want), response)
	got, _ := read(packet)
	require.True(t, same(got, want), "packed %v, read %v", want, got)
}

// A script is what a Writer is to pack: for each operation its kind, its reduce.Op and
// reduce.Kind, how many elements or bytes, and an offset.
const scriptStep = 6

// next is the first operation of a script, of a shape that exists. Its bytes are values.
func next(script []byte, value byte) operation {
	s := aggregate.Shape{Kind: aggregate.Kind(script[0]%6 + 1)}
	size := int(binary.LittleEndian.Uint16(script[3:]))
	switch s.Kind {
	case aggregate.Put, aggregate.Get:
		s.Size = min(size, aggregate.MaxSize)
	case aggregate.Accumulate, aggregate.Fetch, aggregate.Swap:
		s.Element = reduce.Kind(script[2]) % reduce.Kinds
		s.Size = s.Element.Size()
		if s.Kind == aggregate.Swap {
			break
		}
		s.Size *= min(size, aggregate.MaxSize/s.Size)
		if op := reduce.Op(script[1] % 9); reduce.Supported(s.Element, op) == nil {
			s.Op = op
		}
	}
	operand := make([]byte, operandBytes(s))
	for i := range operand {
		operand[i] = value + byte(i)
	}
	return operation{s, uint64(script[5]) * 0x0101010101010101, operand}
}

// FuzzWriter packs what a script says into memory and for a response of some lengths. What
// there was room for, and nothing else, is in the packet.
func FuzzWriter(f *testing.F) {
	for kind := range byte(6) {
		for op := range byte(9) {
			f.Add([]byte{
				kind, op, 3, 8, 0, 1,
				kind, op, 3, 8, 0, 2,
				kind, op, 9, 3, 0, 255,
				0, 0, 0, 9, 0, 7,
				kind, op, 11, 0, 0, 0,
			}, uint16(256), uint16(op)*16)
		}
	}
	f.Add([]byte{0, 0, 0, 0xff, 0xff, 1, 1, 0, 0, 0xff, 0xff, 1}, uint16(0xffff), uint16(0xffff))
	f.Fuzz(func(t *testing.T, script []byte, room, response uint16) {
		var w aggregate.Writer
		memory := dirty(int(room) + 8)
		w.Begin(memory[:room], int(response))
		var all []operation
		for ; len(script) >= scriptStep; script = script[scriptStep:] {
			o := next(script, byte(len(script)))
			with := append(slices.Clip(all), o)
			fits := packed(with) <= int(room) && responseBytes(with) <= int(response)
			require.Equal(t, fits, add(&w, with[len(all):]) == 1, "%+v behind %d operations", o.shape, len(all))
			if fits {
				all = with
			}
		}
		requireWhole(t, &w, all)
		require.Equal(t, dirty(8), memory[room:])
	})
}

package aggregate_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
)

// exists tells whether there is a shape, by the documentation of Kind.
func exists(s aggregate.Shape) bool {
	switch s.Kind {
	case aggregate.Put, aggregate.Get:
		return s.Op == 0 && s.Element == 0 && s.Size <= aggregate.MaxSize
	case aggregate.Notify:
		return s.Op == 0 && s.Element == 0 && s.Size == 0
	case aggregate.Swap:
		return s.Op == 0 && s.Element < reduce.Kinds && s.Size == s.Element.Size()
	case aggregate.Accumulate, aggregate.Fetch:
		return s.Element < reduce.Kinds && reduce.Supported(s.Element, s.Op) == nil && s.Size <= aggregate.MaxSize && s.Size%s.Element.Size() == 0
	}
	return false
}

// TestEveryHeader checks a run, of no operations, of every header: it is refused if there is no such shape,
// or if a byte that means nothing is not zero.
func TestEveryHeader(t *testing.T) {
	for _, kind := range []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 255} {
		for _, op := range []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 255} {
			for _, element := range []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 255} {
				for _, zero := range []byte{0, 1, 255} {
					for _, size := range []int{0, 1, 2, 3, 4, 8, 12, 16, 24, 32, 65520, 65527, 65528, 65529, 65535} {
						header := []byte{kind, op, element, zero, byte(size), byte(size >> 8), 0, 0}
						_, err := aggregate.Check(header)
						if zero == 0 && exists(aggregate.Shape{Kind: aggregate.Kind(kind), Op: reduce.Op(op), Element: reduce.Kind(element), Size: size}) {
							require.NoError(t, err, "header % x", header)
						} else if !errors.Is(err, aggregate.ErrPacket) {
							t.Fatalf("header % x: %v", header, err)
						}
					}
				}
			}
		}
	}
}

// TestCut checks packets of which bytes are missing: only between two runs is one whole.
func TestCut(t *testing.T) {
	all := mixed()
	packet := pack(t, all)
	ends := map[int]int{0: 0}
	for i := range all {
		if i+1 == len(all) || all[i].shape != all[i+1].shape {
			ends[packed(all[:i+1])] = responseBytes(all[:i+1])
		}
	}
	for n := range len(packet) + 1 {
		response, err := aggregate.Check(packet[:n])
		if want, whole := ends[n]; whole {
			require.NoError(t, err)
			require.Equal(t, want, response)
		} else {
			require.ErrorIs(t, err, aggregate.ErrPacket)
		}
	}
}

// TestResponseOfManyRuns adds up what is requested, though that may be longer than any packet.
func TestResponseOfManyRuns(t *testing.T) {
	most := operations(aggregate.Shape{Kind: aggregate.Get, Size: aggregate.MaxSize}, 2*65535)
	response, err := aggregate.Check(pack(t, most))
	require.NoError(t, err)
	require.Equal(t, responseBytes(most), response)
}

// TestRunOfNone: a run may have no operations.
func TestRunOfNone(t *testing.T) {
	notify := pack(t, operations(aggregate.Shape{Kind: aggregate.Notify}, 1))
	packet := slices.Concat([]byte{1, 0, 0, 0, 8, 0, 0, 0}, notify, []byte{2, 0, 0, 0, 8, 0, 0, 0})
	response, err := aggregate.Check(packet)
	require.NoError(t, err)
	require.Zero(t, response)
	got, runs := read(packet)
	require.Len(t, got, 1)
	require.Equal(t, 3, runs)
}

func TestMessages(t *testing.T) {
	for _, c := range []struct {
		packet []byte
		want   string
	}{
		{[]byte{1, 0, 0}, "aggregate: malformed packet: 3 bytes, a header has 8"},
		{[]byte{7, 0, 0, 0, 8, 0, 1, 0}, "aggregate: malformed packet: no kind 7 of operations, there are 1 to 6"},
		{[]byte{1, 0, 0, 9, 8, 0, 1, 0}, "aggregate: malformed packet: header 01 00 00 09 08 00 01 00, byte 3 must be zero"},
		{[]byte{1, 0, 0, 0, 0xff, 0xff, 1, 0}, "aggregate: malformed packet: an operation of 65535 bytes, at most 65528 are allowed"},
		{[]byte{2, 1, 0, 0, 8, 0, 1, 0}, "aggregate: malformed packet: header 02 01 00 00 08 00 01 00, byte 1 must be zero for kind 2"},
		{[]byte{1, 0, 3, 0, 8, 0, 1, 0}, "aggregate: malformed packet: header 01 00 03 00 08 00 01 00, byte 2 must be zero for kind 1"},
		{[]byte{6, 0, 0, 0, 8, 0, 1, 0}, "aggregate: malformed packet: 8 bytes of a notification, which has none"},
		{[]byte{3, 0, 12, 0, 8, 0, 1, 0}, "aggregate: malformed packet: no kind 12 of elements, there are 0 to 11"},
		{[]byte{4, 0, 3, 0, 12, 0, 1, 0}, "aggregate: malformed packet: 12 bytes of int64 for kind 4"},
		{[]byte{5, 0, 3, 0, 16, 0, 1, 0}, "aggregate: malformed packet: 16 bytes of int64 for kind 5"},
		{[]byte{5, 1, 3, 0, 8, 0, 1, 0}, "aggregate: malformed packet: header 05 01 03 00 08 00 01 00, byte 1 must be zero for kind 5"},
		{[]byte{3, 4, 9, 0, 8, 0, 1, 0}, "aggregate: malformed packet: reduce: operation not for this element type: And of float64; allowed are Sum, Product, Min, Max, Replace and NoOp"},
		{[]byte{1, 0, 0, 0, 8, 0, 2, 0, 0, 0}, "aggregate: malformed packet: 2 operations of 16 bytes in 2"},
	} {
		_, err := aggregate.Check(c.packet)
		require.EqualError(t, err, c.want)
	}
}

// TestMost: one operation that touches so much has room, where one that touches the next
// multiple of 8 has none.
func TestMost(t *testing.T) {
	for room := range 1 << 10 {
		most := aggregate.Most(room)
		require.Zero(t, most%8, "room for %d bytes", room)
		var w aggregate.Writer
		w.Begin(make([]byte, room), room)
		_, ok := w.Add(&aggregate.Shape{Kind: aggregate.Put, Size: most + 8}, 0)
		require.False(t, ok, "room for %d bytes", room)
		if most > 0 {
			_, ok = w.Add(&aggregate.Shape{Kind: aggregate.Put, Size: most}, 0)
			require.True(t, ok, "room for %d bytes", room)
		}
	}
	require.Equal(t, aggregate.MaxSize, aggregate.Most(1<<20))
	require.Zero(t, aggregate.Most(-100))
}

func TestPadded(t *testing.T) {
	for n, padded := range []int{0, 8, 8, 8, 8, 8, 8, 8, 8, 16} {
		require.Equal(t, padded, aggregate.Padded(n))
	}
}

package aggregate_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
)

// TestEveryShape packs operations of each shape into a packet that is just as long as they
// need, and reads them where the packet is on any boundary.
func TestEveryShape(t *testing.T) {
	for shape := range shapes() {
		want := operations(shape, 3)
		packet := pack(t, want)
		if len(packet) != packed(want) {
			t.Errorf("%+v: a packet of %d bytes, should be of %d", shape, len(packet), packed(want))
		}
		boundaries := 8
		if len(packet) > 1<<14 {
			boundaries = 2
		}
		for boundary := range boundaries {
			moved := append(make([]byte, boundary, boundary+len(packet)), packet...)[boundary:]
			response, err := aggregate.Check(moved)
			if err != nil || response != responseBytes(want) {
				t.Errorf("%+v: a response of %d bytes, %v; should be %d", shape, response, err, responseBytes(want))
				continue
			}
			if got, runs := read(moved); runs != 1 || !same(got, want) {
				t.Errorf("%+v, %d bytes behind a boundary: packed %v, read %v in %d runs", shape, boundary, want, got, runs)
			}
		}
	}
}

// same tells whether two lists have the same operations.
func same(a, b []operation) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].shape != b[i].shape || a[i].offset != b[i].offset || !bytes.Equal(a[i].operand, b[i].operand) {
			return false
		}
	}
	return true
}

// TestFormat has every kind as the documentation of the package says, in memory that was
// not zero.
func TestFormat(t *testing.T) {
	for _, c := range []struct {
		name   string
		shape  aggregate.Shape
		packet []byte
	}{
		{"two puts of 3 bytes", aggregate.Shape{Kind: aggregate.Put, Size: 3}, []byte{
			1, 0, 0, 0, 3, 0, 2, 0,
			3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0,
			11, 7, 6, 5, 4, 3, 2, 1, 4, 5, 6, 0, 0, 0, 0, 0,
		}},
		{"two gets of 258 bytes", aggregate.Shape{Kind: aggregate.Get, Size: 258}, []byte{
			2, 0, 0, 0, 2, 1, 2, 0,
			3, 0, 0, 0, 0, 0, 0, 0,
			11, 7, 6, 5, 4, 3, 2, 1,
		}},
		{"an accumulate", aggregate.Shape{Kind: aggregate.Accumulate, Op: reduce.Xor, Element: reduce.Uint32, Size: 8}, []byte{
			3, 6, 6, 0, 8, 0, 1, 0,
			3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8,
		}},
		{"a fetch and add", aggregate.Shape{Kind: aggregate.Fetch, Element: reduce.Int16, Size: 2}, []byte{
			4, 0, 1, 0, 2, 0, 1, 0,
			3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0,
		}},
		{"a fetch alone", aggregate.Shape{Kind: aggregate.Fetch, Op: reduce.NoOp, Element: reduce.Float64, Size: 16}, []byte{
			4, 8, 9, 0, 16, 0, 1, 0,
			3, 0, 0, 0, 0, 0, 0, 0,
		}},
		{"a swap", aggregate.Shape{Kind: aggregate.Swap, Element: reduce.Int16, Size: 2}, []byte{
			5, 0, 1, 0, 2, 0, 1, 0,
			3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0,
		}},
		{"a notification", aggregate.Shape{Kind: aggregate.Notify}, []byte{
			6, 0, 0, 0, 0, 0, 1, 0,
			3, 0, 0, 0, 0, 0, 0, 0,
		}},
	} {
		count := int(c.packet[6])
		require.Equal(t, c.packet, pack(t, operations(c.shape, count)), c.name)
	}
}

// mixed are operations of which some neighbors are of one shape.
func mixed() (all []operation) {
	put := aggregate.Shape{Kind: aggregate.Put, Size: 5}
	for _, some := range []struct {
		shape aggregate.Shape
		count int
	}{
		{put, 3},
		{aggregate.Shape{Kind: aggregate.Put, Size: 6}, 1},
		{aggregate.Shape{Kind: aggregate.Get, Size: 6}, 2},
		{put, 1},
		{aggregate.Shape{Kind: aggregate.Accumulate, Element: reduce.Int64, Size: 8}, 2},
		{aggregate.Shape{Kind: aggregate.Accumulate, Op: reduce.Max, Element: reduce.Int64, Size: 8}, 1},
		{aggregate.Shape{Kind: aggregate.Accumulate, Op: reduce.Max, Element: reduce.Uint64, Size: 8}, 1},
		{aggregate.Shape{Kind: aggregate.Fetch, Op: reduce.Max, Element: reduce.Uint64, Size: 8}, 1},
		{aggregate.Shape{Kind: aggregate.Swap, Element: reduce.Complex128, Size: 16}, 2},
		{aggregate.Shape{Kind: aggregate.Notify}, 2},
		{put, 2},
	} {
		all = append(all, operations(some.shape, some.count)...)
	}
	return all
}

// TestRuns has a run for every change of shape, whichever field changes.
func TestRuns(t *testing.T) {
	want := mixed()
	packet := pack(t, want)
	got, runs := read(packet)
	require.Equal(t, 11, runs)
	require.True(t, same(got, want), "packed %v, read %v", want, got)
}

// TestNoRoom packs into memory of every length: as many operations go in as there is room
// for, and the packet is whole.
func TestNoRoom(t *testing.T) {
	all := mixed()
	for room := range packed(all) {
		var w aggregate.Writer
		memory := dirty(room + 8)
		w.Begin(memory[:room], responseBytes(all))
		got := add(&w, all)
		require.LessOrEqual(t, packed(all[:got]), room)
		require.Greater(t, packed(all[:got+1]), room)
		requireWhole(t, &w, all[:got])
		require.Equal(t, dirty(8), memory[room:], "written behind %d bytes", room)
	}
}

// TestResponseBound packs as many operations as a bound of the response allows.
func TestResponseBound(t *testing.T) {
	all := mixed()
	for bound := range responseBytes(all) {
		var w aggregate.Writer
		w.Begin(dirty(packed(all)), bound)
		got := add(&w, all)
		require.LessOrEqual(t, responseBytes(all[:got]), bound)
		require.Greater(t, responseBytes(all[:got+1]), bound)
		requireWhole(t, &w, all[:got])
	}
}

// TestRefusalChangesNothing has operations that there is no room for between others, which
// are packed as if those had not been tried.
func TestRefusalChangesNothing(t *testing.T) {
	var w aggregate.Writer
	put := operations(aggregate.Shape{Kind: aggregate.Put, Size: 8}, 2)
	w.Begin(dirty(packed(put)), 8)
	require.Equal(t, 1, add(&w, put[:1]))
	for shape := range shapes() {
		if shape == put[0].shape || packed(operations(shape, 1)) <= 16 {
			continue
		}
		operand, ok := w.Add(&shape, 1)
		require.False(t, ok, "%+v", shape)
		require.Nil(t, operand)
	}
	require.Equal(t, 1, add(&w, put[1:]))
	requireWhole(t, &w, put)
	_, runs := read(w.Packet())
	require.Equal(t, 1, runs)
}

// requireWhole has a Writer's packet hold operations.
func requireWhole(t *testing.T, w *aggregate.Writer, want []operation) {
	t.Helper()
	response, err := aggregate.Check(w.Packet())
	require.NoError(t, err)
	require.Equal(t, responseBytes(want), response)
	require.Equal(t, len(want), w.Operations())
	require.Len(t, w.Packet(), packed(want))
	got, _ := read(w.Packet())
	require.True(t, same(got, want), "packed %v, read %v", want, got)
}

// TestNothing: a Writer that was given nothing packs nothing, and no packet asks nothing.
func TestNothing(t *testing.T) {
	var w aggregate.Writer
	_, ok := w.Add(&aggregate.Shape{Kind: aggregate.Notify}, 0)
	require.False(t, ok)
	requireWhole(t, &w, nil)
}

// TestLongRuns packs more operations of one shape than a run has.
func TestLongRuns(t *testing.T) {
	for _, c := range []struct{ count, runs int }{{65534, 1}, {65535, 1}, {65536, 2}, {2 * 65535, 2}, {2*65535 + 1, 3}} {
		want := operations(aggregate.Shape{Kind: aggregate.Fetch, Element: reduce.Int8, Size: 1}, c.count)
		packet := pack(t, want)
		require.Len(t, packet, 8*c.runs+16*c.count)
		response, err := aggregate.Check(packet)
		require.NoError(t, err)
		require.Equal(t, 8*c.count, response)
		got, runs := read(packet)
		require.Equal(t, c.runs, runs)
		require.True(t, same(got, want), "%d operations", c.count)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	all := mixed()
	memory := make([]byte, packed(all))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		var w aggregate.Writer
		w.Begin(memory, responseBytes(all))
		if add(&w, all) != len(all) {
			t.Fatal("no room")
		}
		if _, err := aggregate.Check(w.Packet()); err != nil {
			t.Fatal(err)
		}
		reader := aggregate.NewReader(w.Packet())
		for run, ok := reader.Next(); ok; run, ok = reader.Next() {
			for i := range run.Count {
				run.Operation(i)
			}
		}
	}))
}

// TestWords packs accumulates of one element as words into packets of every length, behind what is not like
// them and behind what is. The packets are those that Add makes.
func TestWords(t *testing.T) {
	for shape := range shapes() {
		if shape.Kind != aggregate.Accumulate || shape.Size != shape.Element.Size() || shape.Size > 8 {
			continue
		}
		all := operations(shape, 5)
		words := make([]uint64, 0, 2*len(all))
		for _, o := range all {
			var operand [8]byte
			copy(operand[:], o.operand)
			words = append(words, o.offset, binary.NativeEndian.Uint64(operand[:]))
		}
		like := operations(shape, 1)
		for _, before := range [][]operation{nil, like, operations(aggregate.Shape{Kind: aggregate.Get, Size: 8}, 1)} {
			for room := packed(before); room <= packed(slices.Concat(before, all))+8; room++ {
				var want, got aggregate.Writer
				want.Begin(dirty(room), 64)
				got.Begin(dirty(room), 64)
				add(&want, before)
				add(&got, before)
				n := add(&want, all)
				require.Equal(t, 2*n, got.AddWords(&shape, words), "%+v, room of %d", shape, room)
				require.Equal(t, want.Packet(), got.Packet())
				require.Equal(t, want.Operations(), got.Operations())
			}
		}
	}
}

// TestManyWords packs more than a run has room for.
func TestManyWords(t *testing.T) {
	shape := aggregate.Shape{Kind: aggregate.Accumulate, Element: reduce.Uint64, Size: 8}
	words := make([]uint64, 2*70_000)
	for i := range words {
		words[i] = uint64(i)
	}
	var w aggregate.Writer
	w.Begin(dirty(2<<20), 0)
	n := w.AddWords(&shape, words)
	require.Equal(t, 2*65535, n)
	require.Equal(t, len(words)-n, w.AddWords(&shape, words[n:]))
	_, err := aggregate.Check(w.Packet())
	require.NoError(t, err)
	all, runs := read(w.Packet())
	require.Equal(t, 2, runs)
	for i, o := range all {
		require.Equal(t, uint64(2*i), o.offset)
		require.Equal(t, uint64(2*i+1), binary.NativeEndian.Uint64(o.operand))
	}
}

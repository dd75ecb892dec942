package verbstest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/onesided/rma/verbs"
)

// all is every right that a region can grant.
const all = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic

// An area is registered memory of a rank.
type area struct {
	*rank
	handle int
	size   int
	verbs.RemoteRegion
}

// allocate registers memory of the device.
func (r *rank) allocate(size int, access verbs.Access) *area {
	r.Helper()
	a := r.must(allocateStep{Size: size, Access: access})
	return &area{r, a.Handle, size, a.Region}
}

// heap registers memory of the Go heap, or skips the case if the device cannot serve that.
func (r *rank) heap(size int, access verbs.Access) *area {
	r.Helper()
	a := r.may(allocateStep{Size: size, Access: access, Heap: true})
	r.skipIfIncapable(a.Err)
	return &area{r, a.Handle, size, a.Region}
}

// skipIfIncapable skips the case if err is a capability error, and fails it with any other error.
func (r *rank) skipIfIncapable(err *fault) {
	r.Helper()
	if err == nil {
		return
	}
	if isCapability(err) {
		r.Skipf("skipped: %v", err)
	}
	r.Fatal(err)
}

// register makes another region over a part of an area.
func (a *area) register(from, to int, access verbs.Access) *area {
	a.Helper()
	got := a.must(registerStep{Of: a.at(from, to), Access: access})
	return &area{a.rank, got.Handle, to - from, got.Region}
}

func (a *area) deregister() {
	a.Helper()
	a.must(deregisterStep{a.handle})
}

// at names the bytes [from, to).
func (a *area) at(from, to int) segment { return segment{a.handle, from, to} }

// every names all bytes.
func (a *area) every() segment { return a.at(0, a.size) }

// memory returns the area's memory, of a near rank only.
func (a *area) memory() []byte { return a.station.area(a.handle).memory }

func (a *area) lkey() uint32 { return a.station.area(a.handle).region.LKey() }

func (a *area) load() []byte {
	a.Helper()
	return a.must(loadStep{a.every()}).Bytes
}

func (a *area) store(from int, data []byte) {
	a.Helper()
	a.must(storeStep{a.at(from, from+len(data)), data})
}

// fill fills the area with bytes determined by the seed and returns them.
func (a *area) fill(seed uint64) []byte {
	a.Helper()
	a.must(fillStep{a.every(), seed})
	return noise(seed, a.size)
}

// expect fails the case unless the area holds want.
func (a *area) expect(want []byte, after string) {
	a.Helper()
	var got []byte
	if a.station != nil {
		got = a.memory()
	} else {
		// Megabytes through a pipe take longer than the transfers that are tested.
		if a.must(sumStep{a.every()}).Number == sum(want) && a.size == len(want) {
			return
		}
		got = a.load()
	}
	if difference := differ(got, want); difference != "" {
		a.Fatalf("after %s: %s", after, difference)
	}
	if a.station == nil {
		a.Fatalf("after %s: the memory changed while it was compared", after)
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum returns a checksum of what an area should hold.
func sum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// noise returns n bytes determined by the seed, without long runs of any kind.
func noise(seed uint64, n int) []byte {
	data := make([]byte, n)
	makeNoise(data, seed)
	return data
}

// makeNoise fills data with the bytes of noise, which come from the generator SplitMix64.
func makeNoise(data []byte, seed uint64) {
	state := seed * 0xd1342543de82ef95
	next := func() uint64 {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
	whole := len(data) &^ 7
	for i := 0; i < whole; i += 8 {
		binary.LittleEndian.PutUint64(data[i:i+8:i+8], next())
	}
	var last [8]byte
	binary.LittleEndian.PutUint64(last[:], next())
	copy(data[whole:], last[:])
}

// differ describes the first difference, or returns "" if there is none.
func differ(got, want []byte) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d bytes, want %d", len(got), len(want))
	}
	if bytes.Equal(got, want) {
		return ""
	}
	first, last := -1, -1
	for i := range got {
		if got[i] != want[i] {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return fmt.Sprintf("of %d bytes those from %d to %d differ: %#x… instead of %#x…",
		len(got), first, last, got[first:min(first+8, last+1)], want[first:min(first+8, last+1)])
}

// get64 and put64 access a word in native byte order.

func get64(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }

func put64(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }

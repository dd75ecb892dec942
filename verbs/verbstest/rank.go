package verbstest

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/onesided/rma/verbs"
)

// all is every right that a region can grant.
const all = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead | verbs.RemoteAtomic

// A rank is one side of a case.
type rank struct {
	*bench
	// station is nil if the rank may be in another process, device likewise.
	station *station
	device  verbs.Device
	driver  driver
	address string
}

func (b *bench) rank(s *station, d driver) *rank {
	b.Helper()
	r := &rank{bench: b, station: s, driver: d}
	if s != nil {
		r.device = s.device
	}
	r.address = r.must(addressStep{}).Address
	return r
}

// may carries a step out; what the device said is the caller's to judge.
func (r *rank) may(p step) answer {
	r.Helper()
	a := r.driver.do(p)
	if a.Failure != "" {
		r.Fatalf("%T: %s", p, a.Failure)
	}
	return a
}

// must carries a step out and fails the case if the device refuses.
func (r *rank) must(p step) answer {
	r.Helper()
	a := r.may(p)
	if a.Err != nil {
		r.Fatalf("%T: %v", p, a.Err)
	}
	return a
}

// begin carries a step out while the case goes on. The function that it
// returns waits for it, and fails the case as must does.
func (r *rank) begin(p step) (wait func() answer) {
	done := make(chan answer, 1)
	go func() { done <- r.driver.do(p) }()
	return func() answer {
		r.Helper()
		a := <-done
		if a.Failure != "" {
			r.Fatalf("%T: %s", p, a.Failure)
		}
		if a.Err != nil {
			r.Fatalf("%T: %v", p, a.Err)
		}
		return a
	}
}

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

// heap registers memory of the Go heap, or skips the case where the device
// cannot serve that.
func (r *rank) heap(size int, access verbs.Access) *area {
	r.Helper()
	a := r.may(allocateStep{Size: size, Access: access, Heap: true})
	r.skipIfIncapable(a.Err)
	return &area{r, a.Handle, size, a.Region}
}

// skipIfIncapable skips the case if err is a capability error and fails it
// with any other.
func (r *rank) skipIfIncapable(err *fault) {
	r.Helper()
	if err == nil {
		return
	}
	if isCapability(err) {
		r.Skipf("verbstest: %v", err)
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

// memory is the area's memory, of a near rank only.
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

// fill fills the area with bytes that the seed decides and returns them.
func (a *area) fill(seed uint64) []byte {
	a.Helper()
	data := noise(seed, a.size)
	a.store(0, data)
	return data
}

// expect fails the case unless the area holds want.
func (a *area) expect(want []byte, after string) {
	a.Helper()
	if difference := differ(a.load(), want); difference != "" {
		a.Fatalf("after %s: %s", after, difference)
	}
}

// noise returns n bytes that the seed decides, without long runs of any kind.
func noise(seed uint64, n int) []byte {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	data := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(data)
	return data
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

// target returns a request with the remote address of an offset in the area.
func (a *area) target(offset int) verbs.SendRequest {
	return verbs.SendRequest{RemoteAddress: a.Address + uint64(offset), RKey: a.RKey}
}

// write, read and the others make works on the area that are signalled.

func (a *area) write(id uint64, offset int, from ...segment) work {
	return a.work(id, verbs.OpRDMAWrite, offset, from...)
}

func (a *area) read(id uint64, offset int, into ...segment) work {
	return a.work(id, verbs.OpRDMARead, offset, into...)
}

func (a *area) fetchAdd(id uint64, offset int, delta uint64, into segment) work {
	w := a.work(id, verbs.OpFetchAdd, offset, into)
	w.Operand = delta
	return w
}

func (a *area) compareSwap(id uint64, offset int, old, new uint64, into segment) work {
	w := a.work(id, verbs.OpCompareSwap, offset, into)
	w.Compare, w.Operand = old, new
	return w
}

func (a *area) writeImmediate(id uint64, offset int, immediate uint32, from ...segment) work {
	w := a.work(id, verbs.OpRDMAWriteImmediate, offset, from...)
	w.Immediate = immediate
	return w
}

func (a *area) work(id uint64, opcode verbs.Opcode, offset int, segments ...segment) work {
	w := work{SendRequest: a.target(offset), Named: segments}
	w.ID, w.Opcode, w.Flags = id, opcode, verbs.Signalled
	return w
}

func send(id uint64, from ...segment) work {
	return work{SendRequest: verbs.SendRequest{ID: id, Opcode: verbs.OpSend, Flags: verbs.Signalled}, Named: from}
}

func sendImmediate(id uint64, immediate uint32, from ...segment) work {
	w := send(id, from...)
	w.Opcode, w.Immediate = verbs.OpSendImmediate, immediate
	return w
}

// silent makes a work unsignalled.
func (w work) silent() work {
	w.Flags &^= verbs.Signalled
	return w
}

// fenced makes a work wait for earlier reads and atomics.
func (w work) fenced() work {
	w.Flags |= verbs.Fence
	return w
}

// inline makes a work carry data in pieces of these lengths, one if none is said.
func (w work) inline(data []byte, pieces ...int) work {
	w.Flags |= verbs.Inline
	w.Named, w.Data, w.Pieces = nil, data, pieces
	if len(pieces) == 0 {
		w.Pieces = []int{len(data)}
	}
	return w
}

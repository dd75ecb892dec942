package verbstest

import (
	"fmt"
	"sync/atomic"

	"github.com/onesided/rma/verbs"
)

// A Mapper's mapping is the peer's memory itself.
var mapperCases = []testCase{
	{"mapped memory is the same bytes", func(b *bench) {
		for _, size := range []int{1, 4096, 5000, 3 << 20} {
			near, far := b.two()
			theirs := far.allocate(size, all)
			want := theirs.fill(1)
			mapped := near.mapArea(theirs)
			if difference := differ(mapped, want); difference != "" {
				b.Fatalf("a mapping of %d bytes: %s", size, difference)
			}
			copy(mapped, noise(2, size))
			theirs.expect(noise(2, size), "writing to the mapping")
			theirs.fill(3)
			if difference := differ(mapped, noise(3, size)); difference != "" {
				b.Fatalf("a mapping whose owner wrote: %s", difference)
			}
			if again := near.mapArea(theirs); differ(again, noise(3, size)) != "" {
				b.Fatal("a second mapping holds other bytes")
			}
		}
	}},
	{"a part of an allocation is mapped", func(b *bench) {
		near, far := b.two()
		whole := far.allocate(20_000, all)
		want := whole.fill(1)
		for _, cut := range [][2]int{{0, 10}, {4096, 8192}, {100, 19_999}, {19_999, 20_000}} {
			mapped := near.mapArea(whole.register(cut[0], cut[1], all))
			if difference := differ(mapped, want[cut[0]:cut[1]]); difference != "" {
				b.Fatalf("a mapping of the bytes %v: %s", cut, difference)
			}
			if cap(mapped) > len(mapped) {
				b.Fatalf("a mapping of the bytes %v can be appended to", cut)
			}
			mapped[0]++
			want[cut[0]]++
			whole.expect(want, "writing to the mapping of a part")
		}
	}},
	{"requests and mappings see each other", func(b *bench) {
		near, far := b.pair(sizes{})
		theirs, mine := far.allocate(4096, all), near.allocate(4096, all)
		mapped := near.mapArea(theirs)
		data := mine.fill(1)
		w := theirs.write(1, 0, mine.every())
		near.post(w)
		near.expectSent(done(w))
		if difference := differ(mapped, data); difference != "" {
			b.Fatalf("a mapping after a write: %s", difference)
		}
		copy(mapped, noise(2, 4096))
		r := theirs.read(2, 0, mine.every())
		near.post(r)
		near.expectSent(done(r))
		mine.expect(noise(2, 4096), "a read after writing to the mapping")
	}},
	{"what may not be mapped", func(b *bench) {
		near, far := b.two()
		neighbor := near.neighbor(far.address)
		whole := far.allocate(1<<16, all)
		good := whole.register(4096, 8192, all).RemoteRegion
		gone := whole.register(4096, 8192, all)
		gone.deregister()
		mine := near.allocate(4096, all)
		for what, change := range map[string]func(r *verbs.RemoteRegion){
			"with a wrong key":             func(r *verbs.RemoteRegion) { r.RKey ^= 0x40000001 },
			"with a key of another device": func(r *verbs.RemoteRegion) { *r = mine.RemoteRegion },
			"that is longer":               func(r *verbs.RemoteRegion) { r.Length++ },
			"that begins before":           func(r *verbs.RemoteRegion) { r.Address-- },
			"that begins elsewhere":        func(r *verbs.RemoteRegion) { r.Address += r.Length + 1 },
			"whose length overflows":       func(r *verbs.RemoteRegion) { r.Length = ^uint64(0) },
			"whose end overflows":          func(r *verbs.RemoteRegion) { r.Length = ^r.Address + 2 },
			"whose address overflows":      func(r *verbs.RemoteRegion) { r.Address += 1 << 63 },
			"that is deregistered":         func(r *verbs.RemoteRegion) { *r = gone.RemoteRegion },
		} {
			bad := good
			change(&bad)
			if memory, err := neighbor.Map(bad); err == nil {
				b.Errorf("Map of a region %s gave %d bytes", what, len(memory))
			}
		}
		if _, err := neighbor.Map(good); err != nil {
			b.Errorf("Map of the region as it is: %v", err)
		}
	}},
	{"neighbors are cached and checked", func(b *bench) {
		near, far := b.two()
		mapper := able[verbs.Mapper](near)
		if near.neighbor(far.address) != near.neighbor(far.address) {
			b.Error("the same address gives two Neighbors")
		}
		gone := b.near()
		b.check(gone.station.close(), "Close")
		for _, address := range []string{"", "nobody", far.address + "x", gone.address} {
			if _, err := mapper.Neighbor(address); err == nil {
				b.Errorf("there is a Neighbor at %q", address)
			}
		}
	}},
	{"a device is its own neighbor", func(b *bench) {
		near := b.near()
		mine := near.allocate(4096, all)
		want := mine.fill(1)
		mapped, err := near.neighbor(near.address).Map(mine.RemoteRegion)
		b.check(err, "Map")
		if difference := differ(mapped, want); difference != "" {
			b.Fatalf("a mapping of the device's own memory: %s", difference)
		}
		mapped[7]++
		want[7]++
		mine.expect(want, "writing to the mapping of the device's own memory")
	}},
	{"a mapping outlives its owner", func(b *bench) {
		for _, end := range []func(far *rank){
			func(far *rank) { far.must(closeDeviceStep{}) },
			func(far *rank) { far.driver.kill() },
		} {
			near, far := b.two()
			theirs := far.allocate(3<<20, all)
			mapped := near.mapArea(theirs)
			end(far)
			copy(mapped, noise(1, len(mapped)))
			if difference := differ(mapped, noise(1, len(mapped))); difference != "" {
				b.Fatalf("a mapping whose owner is gone: %s", difference)
			}
			near.neighbor(far.address).Wake()
		}
	}},
	{"a mapping outlives its region", func(b *bench) {
		near, far := b.two()
		theirs := far.allocate(4096, all)
		mapped := near.mapArea(theirs)
		theirs.deregister()
		far.must(freeStep{theirs.handle})
		next := far.allocate(4096, all)
		want := next.fill(1)
		copy(mapped, noise(2, 4096)) // by a late user
		next.expect(want, "writing to a mapping of memory that was freed")
	}},
	{"a ring from a neighbor wakes", func(b *bench) {
		near, far := b.two()
		const rounds = 1000
		theirs := far.allocate(64, all)
		mapped := near.mapArea(theirs)
		call, answered := word(mapped, 0), word(mapped, 8)
		neighbor := near.neighbor(far.address)
		wait := far.begin(echoStep{theirs.handle, near.address, rounds})
		for round := range uint64(rounds) {
			atomic.StoreUint64(call, round+1)
			neighbor.Wake()
			err := near.station.await(fmt.Sprintf("echo %d", round+1), func() bool {
				return atomic.LoadUint64(answered) == round+1
			})
			b.check(err, "waiting for a Neighbor")
		}
		wait()
	}},
	{"memory of the program's own", func(b *bench) {
		near, far := b.two()
		neighbor := near.neighbor(far.address)
		theirs := far.heap(10_000, all&^verbs.RemoteAtomic)
		want := theirs.fill(1)
		if mapped, err := neighbor.Map(theirs.RemoteRegion); err == nil {
			if difference := differ(mapped, want); difference != "" {
				b.Fatalf("a mapping of the Go heap: %s", difference)
			}
			mapped[9]++
			want[9]++
			theirs.expect(want, "writing to a mapping of the Go heap")
			return
		} else if !isCapability(err) {
			b.Fatalf("Map of the Go heap: %v; want a *CapabilityError", err)
		}
		into := make([]byte, 3000)
		near.skipIfIncapable(faultOf(neighbor.ReadAt(into, theirs.RemoteRegion, 5001)))
		if difference := differ(into, want[5001:8001]); difference != "" {
			b.Fatalf("ReadAt: %s", difference)
		}
		near.skipIfIncapable(faultOf(neighbor.WriteAt(noise(2, 3000), theirs.RemoteRegion, 7000)))
		copy(want[7000:], noise(2, 3000))
		theirs.expect(want, "WriteAt")
		b.check(neighbor.ReadAt(nil, theirs.RemoteRegion, 0), "ReadAt of nothing")
		b.check(neighbor.WriteAt(nil, theirs.RemoteRegion, 0), "WriteAt of nothing")

		wrong := theirs.RemoteRegion
		wrong.RKey ^= 0x40000001
		long := theirs.RemoteRegion
		long.Length += 1 << 20
		for what, err := range map[string]error{
			"ReadAt across the end":     neighbor.ReadAt(into, theirs.RemoteRegion, 7001),
			"WriteAt across the end":    neighbor.WriteAt(into, theirs.RemoteRegion, 7001),
			"ReadAt behind the end":     neighbor.ReadAt(into, theirs.RemoteRegion, 20_000),
			"WriteAt behind the end":    neighbor.WriteAt(into, theirs.RemoteRegion, 20_000),
			"ReadAt with overflow":      neighbor.ReadAt(into, theirs.RemoteRegion, ^uint64(0)),
			"WriteAt with overflow":     neighbor.WriteAt(into, theirs.RemoteRegion, ^uint64(99)),
			"ReadAt with a wrong key":   neighbor.ReadAt(into, wrong, 0),
			"WriteAt with a wrong key":  neighbor.WriteAt(into, wrong, 0),
			"ReadAt past a long claim":  neighbor.ReadAt(into, long, 9000),
			"WriteAt past a long claim": neighbor.WriteAt(into, long, 9000),
		} {
			if err == nil {
				b.Errorf("%s went well", what)
			}
		}
		theirs.expect(want, "WriteAt that is not allowed")
	}},
}

func (r *rank) neighbor(address string) verbs.Neighbor {
	r.Helper()
	neighbor, err := able[verbs.Mapper](r).Neighbor(address)
	r.check(err, "Neighbor")
	return neighbor
}

// mapArea maps memory of another rank's device.
func (r *rank) mapArea(theirs *area) []byte {
	r.Helper()
	mapped, err := r.neighbor(theirs.address).Map(theirs.RemoteRegion)
	r.check(err, "Map")
	return mapped
}

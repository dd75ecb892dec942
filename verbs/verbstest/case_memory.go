package verbstest

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"weak"

	"github.com/onesided/rma/verbs"
)

// Memory is as documented, and regions live as long as documented.
var memoryCases = []testCase{
	{"allocated memory is zeroed and aligned", func(b *bench) {
		near := b.near()
		for _, n := range []int{1, 8, 63, 4096, 4097, 100_000, 2<<20 - 1, 2 << 20, 2<<20 + 1, 9 << 20} {
			memory, err := near.device.AllocateMemory(n)
			b.check(err, fmt.Sprintf("AllocateMemory(%d)", n))
			if len(memory) != n {
				b.Fatalf("AllocateMemory(%d) is %d bytes long", n, len(memory))
			}
			alignment := os.Getpagesize()
			if n >= 2<<20 {
				alignment = 2 << 20
			}
			if !aligned(memory, alignment) {
				b.Errorf("AllocateMemory(%d) is not aligned to %d", n, alignment)
			}
			if difference := differ(memory, make([]byte, n)); difference != "" {
				b.Errorf("AllocateMemory(%d) is not zeroed: %s", n, difference)
			}
			copy(memory, noise(1, n))
		}
	}},
	{"memory that is used again is zeroed again", func(b *bench) {
		near := b.near()
		for _, n := range []int{100, 4096, 70_000, 4 << 20} {
			for round := range 5 {
				memory, err := near.device.AllocateMemory(n)
				b.check(err, fmt.Sprintf("AllocateMemory(%d)", n))
				if difference := differ(memory, make([]byte, n)); difference != "" {
					b.Fatalf("AllocateMemory(%d), round %d, is not zeroed: %s", n, round, difference)
				}
				copy(memory, noise(uint64(round), n))
				b.check(near.device.FreeMemory(memory), "FreeMemory")
			}
		}
	}},
	{"allocations do not overlap", func(b *bench) {
		near := b.near()
		var held [][]byte
		for i := range 60 {
			memory, err := near.device.AllocateMemory(1 + i*977)
			b.check(err, "AllocateMemory")
			copy(memory, noise(uint64(i), len(memory)))
			if i%3 == 2 {
				b.check(near.device.FreeMemory(held[0]), "FreeMemory")
				held = held[1:]
			}
			held = append(held, memory)
		}
		for _, memory := range held {
			i := (len(memory) - 1) / 977
			if difference := differ(memory, noise(uint64(i), len(memory))); difference != "" {
				b.Fatalf("allocation %d: %s", i, difference)
			}
		}
	}},
	{"freed memory is nobody's", func(b *bench) {
		near := b.near()
		for _, n := range []int{64, 4096, 3 << 20} {
			old, err := near.device.AllocateMemory(n)
			b.check(err, "AllocateMemory")
			b.check(near.device.FreeMemory(old), "FreeMemory")
			var held [][]byte
			for i := range 4 {
				memory, err := near.device.AllocateMemory(n)
				b.check(err, "AllocateMemory")
				copy(memory, noise(uint64(i), n))
				held = append(held, memory)
			}
			copy(old, noise(99, n)) // by a late user
			for i, memory := range held {
				if difference := differ(memory, noise(uint64(i), n)); difference != "" {
					b.Fatalf("writing to freed memory changed allocation %d of %d bytes: %s", i, n, difference)
				}
			}
		}
	}},
	{"reserved memory is backed in pieces", func(b *bench) {
		near := b.near()
		reserver := verbs.ReserverOf(near.device)
		const n = 5<<20 + 100
		memory, err := reserver.ReserveMemory(n)
		b.check(err, "ReserveMemory")
		if len(memory) != n || !aligned(memory, 2<<20) {
			b.Fatalf("ReserveMemory(%d) is %d bytes long, or not aligned to 2 MiB", n, len(memory))
		}
		memory[n-1] = 1 // before it is backed
		over, end := context.WithCancel(context.Background())
		end()
		for rest, calls := memory, 0; len(rest) > 0; calls++ {
			backed, err := reserver.BackMemory(over, rest)
			rest = rest[backed:]
			switch {
			case len(rest) > 0 && !errors.Is(err, context.Canceled), len(rest) == 0 && err != nil:
				b.Fatalf("BackMemory whose context is over: %d bytes are left: %v", len(rest), err)
			case backed == 0:
				b.Fatalf("BackMemory whose context is over backs nothing")
			}
		}
		if difference := differ(memory[:n-1], make([]byte, n-1)); difference != "" || memory[n-1] != 1 {
			b.Errorf("backing memory changed it: %s, and %d, was 1", difference, memory[n-1])
		}
		b.check(near.device.FreeMemory(memory), "FreeMemory")
		for _, n := range []int{-1, math.MinInt} {
			if _, err := reserver.ReserveMemory(n); err == nil {
				b.Errorf("ReserveMemory(%d) went well", n)
			}
		}
	}},
	{"memory is freed once", func(b *bench) {
		near := b.near()
		memory, err := near.device.AllocateMemory(4096)
		b.check(err, "AllocateMemory")
		b.check(near.device.FreeMemory(memory), "FreeMemory")
		for what, memory := range map[string][]byte{
			"memory that is freed already": memory, "memory of the Go heap": make([]byte, 4096), "no memory": nil,
		} {
			if err := near.device.FreeMemory(memory); err == nil {
				b.Errorf("FreeMemory of %s went well", what)
			}
		}
	}},
	{"more memory than there is", func(b *bench) {
		near := b.near()
		for _, n := range []int{math.MaxInt, math.MaxInt - 4095, math.MaxInt / 2, 1 << 55} {
			if _, err := near.device.AllocateMemory(n); !errors.Is(err, verbs.ErrMemory) {
				b.Errorf("AllocateMemory(%d): %v; want ErrMemory", n, err)
			}
		}
		near.allocate(4096, all)
	}},
	{"less memory than none", func(b *bench) {
		near := b.near()
		for _, n := range []int{-1, math.MinInt} {
			if memory, err := near.device.AllocateMemory(n); err == nil {
				b.Errorf("AllocateMemory(%d) is %d bytes, no error", n, len(memory))
			}
		}
	}},
	{"a region is what was registered", func(b *bench) {
		near := b.near()
		whole := near.allocate(8192, all)
		part := whole.register(100, 5000, verbs.RemoteRead)
		region := near.station.area(part.handle).region
		if region.Remote() != part.RemoteRegion || part.Length != 4900 {
			b.Errorf("the region is %+v, was %+v; want 4900 bytes", region.Remote(), part.RemoteRegion)
		}
		memory := region.Memory()
		if len(memory) != 4900 || &memory[0] != &whole.memory()[100] {
			b.Errorf("Memory is %d bytes at other memory than what was registered", len(memory))
		}
	}},
	{"a region is deregistered once", func(b *bench) {
		near := b.near()
		whole := near.allocate(64, all)
		part := whole.register(0, 32, all)
		region := near.station.area(part.handle).region
		b.check(region.Deregister(), "Deregister")
		if err := region.Deregister(); !errors.Is(err, verbs.ErrClosed) {
			b.Errorf("a second Deregister: %v; want ErrClosed", err)
		}
		whole.deregister()
	}},
	{"a region with remote rights keeps memory of the program alive", func(b *bench) {
		near, far := b.pair(sizes{})
		theirs := far.heap(1<<16, all&^verbs.RemoteAtomic)
		mine := near.allocate(1<<16, all)
		data := theirs.fill(1)
		far.must(forgetStep{theirs.handle})
		r := theirs.read(1, 0, mine.every())
		near.post(r)
		near.expectSent(done(r))
		mine.expect(data, "a read of memory that only its region keeps alive")
	}},
	{"a weak region does not keep memory of the program alive", func(b *bench) {
		near := b.near()
		for _, right := range []verbs.Access{verbs.RemoteRead, verbs.RemoteWrite, verbs.RemoteAtomic} {
			if _, err := near.device.RegisterMemory(make([]byte, 4096), verbs.Weak|right); err == nil {
				b.Errorf("RegisterMemory with access %#x, weak and for peers: no error", uint32(verbs.Weak|right))
			}
		}
		var region verbs.MemoryRegion
		alive := func() weak.Pointer[byte] {
			memory := make([]byte, 1<<16)
			var err error
			region, err = near.device.RegisterMemory(memory, verbs.LocalWrite|verbs.Weak)
			b.check(err, "RegisterMemory")
			if n := len(region.Memory()); n > 0 {
				b.Errorf("the Memory of a weak region has %d bytes", n)
			}
			return weak.Make(&memory[0])
		}()
		// One collection is enough unless a goroutine of the device is reading the memory.
		const collections = 20
		for n := 1; ; n++ {
			runtime.GC()
			if alive.Value() == nil {
				break
			}
			if n == collections {
				b.Errorf("the memory of a weak region is still there after %d collections", n)
				break
			}
		}
		b.check(region.Deregister(), "Deregister")
	}},
	{"memory of the program is reached from afar", func(b *bench) {
		near, far := b.pair(sizes{})
		theirs, mine := far.heap(300_000, all&^verbs.RemoteAtomic), near.allocate(300_000, all)
		want := mine.fill(1)
		w, r := theirs.write(1, 0, mine.at(0, 200_000)), theirs.read(2, 8, mine.at(200_000, 299_000))
		near.post(w, r)
		near.expectSent(done(w), done(r))
		got := mine.load()
		copy(want[200_000:299_000], want[8:])
		if difference := differ(got, want); difference != "" {
			b.Fatalf("a write to and a read of memory of the Go heap: %s", difference)
		}
		if difference := differ(theirs.load()[:200_000], want[:200_000]); difference != "" {
			b.Fatalf("a write to memory of the Go heap: %s", difference)
		}
	}},
	{"memory of the program takes atomics", func(b *bench) {
		near, far := b.pair(sizes{})
		theirs, mine := far.heap(64, all), near.allocate(16, all)
		want := theirs.fill(1)
		f, c := theirs.fetchAdd(1, 8, 3, mine.at(0, 8)), theirs.compareSwap(2, 8, get64(want[8:])+3, 77, mine.at(8, 16))
		near.post(f, c)
		near.expectSent(done(f), done(c))
		if old := mine.load(); get64(old) != get64(want[8:]) || get64(old[8:]) != get64(want[8:])+3 {
			b.Fatalf("an add and a swap in the Go heap found %x in place of %x", old, want[8:16])
		}
		put64(want[8:], 77)
		theirs.expect(want, "an add and a swap in the Go heap")
	}},
	{"memory of the program is checked as any", func(b *bench) {
		near, far := b.two()
		theirs, mine := far.heap(4096, all&^verbs.RemoteAtomic), near.allocate(64, all)
		readOnly := theirs.register(0, 4096, verbs.RemoteRead)
		want := theirs.fill(1)
		gone := theirs.register(0, 4096, all&^verbs.RemoteAtomic)
		gone.deregister()
		high := *theirs
		high.Address = ^uint64(7)
		wrong := *theirs
		wrong.RKey ^= 0x40000001
		for _, w := range []work{
			theirs.write(1, 4033, mine.every()), theirs.read(2, 4033, mine.every()), theirs.write(3, -1, mine.every()),
			readOnly.write(4, 0, mine.every()), gone.write(5, 0, mine.every()), gone.read(6, 0, mine.every()),
			high.write(7, 0, mine.every()), high.read(8, 0, mine.every()), wrong.write(9, 0, mine.every()),
		} {
			p, _ := connected(near, far, sizes{})
			p.post(w)
			p.expectSent(failed(w.ID, verbs.StatusRemoteAccess))
			p.expectError()
		}
		theirs.expect(want, "requests that are not allowed")
	}},
	{"a region is registered and deregistered many times", func(b *bench) {
		near, far := b.pair(sizes{})
		whole, mine := far.allocate(4096, all), near.allocate(64, all)
		seen := map[uint32]bool{whole.RKey: true}
		for i := range 200 {
			part := whole.register(i, i+1000, all)
			if seen[part.RKey] && i < 10 {
				b.Fatalf("key %#x came again after %d regions", part.RKey, i)
			}
			seen[part.RKey] = true
			w := part.write(1, 0, mine.every())
			near.post(w)
			near.expectSent(done(w))
			part.deregister()
		}
	}},
}

// forgetStep drops all references to an area of the Go heap but its region's, and collects garbage.
type forgetStep struct{ Area int }

func (p forgetStep) do(s *station) answer {
	s.area(p.Area).memory = nil
	for range 3 {
		runtime.GC()
	}
	// Memory that the collector freed would be reused and overwritten here.
	spoil := make([][]byte, 64)
	for i := range spoil {
		spoil[i] = noise(uint64(i), 1<<16)
	}
	runtime.KeepAlive(spoil)
	return answer{}
}

func init() { gob.Register(forgetStep{}) }

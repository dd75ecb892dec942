package verbstest

import (
	"fmt"

	"github.com/onesided/rma/verbs"
)

// A request that the target does not allow fails with StatusRemoteAccess, leaves the target's memory unchanged, and
// fails only its queue pair.
var accessCases = accessViolations()

// victimSize is the length of the region that a violation targets. The region lies in the middle of a larger
// allocation, all of which is checked.
const victimSize = 1024

type victim struct {
	*bench
	near, far *rank
	whole     *area
	region    *area
}

// A remoteOperation is an operation of n bytes, and the right that it needs.
type remoteOperation struct {
	name  string
	n     int
	right verbs.Access
	work  func(target *area, offset int, mine segment) work
}

var remoteOperations = []remoteOperation{
	{"write", 64, verbs.RemoteWrite, func(target *area, offset int, mine segment) work {
		return target.write(1, offset, mine)
	}},
	{"write with immediate", 64, verbs.RemoteWrite, func(target *area, offset int, mine segment) work {
		return target.writeImmediate(1, offset, 5, mine)
	}},
	{"read", 64, verbs.RemoteRead, func(target *area, offset int, mine segment) work {
		return target.read(1, offset, mine)
	}},
	{"fetch and add", 8, verbs.RemoteAtomic, func(target *area, offset int, mine segment) work {
		return target.fetchAdd(1, offset, 1, mine)
	}},
	{"compare and swap", 8, verbs.RemoteAtomic, func(target *area, offset int, mine segment) work {
		return target.compareSwap(1, offset, 0, 1, mine)
	}},
}

// A violation returns the target that a request must not access, and the offset.
type violation struct {
	name string
	aim  func(v *victim, o remoteOperation) (target *area, offset int)
}

var violations = []violation{
	{"with a wrong key", func(v *victim, _ remoteOperation) (*area, int) {
		return v.keyed(v.region.RKey ^ 0x40000001), 0
	}},
	{"with the key of another region", func(v *victim, _ remoteOperation) (*area, int) {
		other := v.far.allocate(victimSize, all)
		return v.keyed(other.RKey), 0
	}},
	{"with a key of the requester's device", func(v *victim, _ remoteOperation) (*area, int) {
		return v.near.allocate(victimSize, all), 0
	}},
	{"with a key of a third device", func(v *victim, _ remoteOperation) (*area, int) {
		return v.far.far().allocate(victimSize, all), 0
	}},
	{"across the beginning of the region", func(v *victim, _ remoteOperation) (*area, int) {
		return v.region, -8
	}},
	{"before the region", func(v *victim, o remoteOperation) (*area, int) {
		return v.region, -o.n - 64
	}},
	{"across the end of the region", func(v *victim, o remoteOperation) (*area, int) {
		return v.region, victimSize - o.n + 8
	}},
	{"behind the region", func(v *victim, _ remoteOperation) (*area, int) {
		return v.region, victimSize + 64
	}},
	{"at an address whose end overflows", func(v *victim, _ remoteOperation) (*area, int) {
		high := *v.region
		high.Address = ^uint64(7)
		return &high, 0
	}},
	{"at an address that overflows into the region", func(v *victim, _ remoteOperation) (*area, int) {
		high := *v.region
		high.Address += 1 << 63
		return &high, 0
	}},
	{"at address zero", func(v *victim, _ remoteOperation) (*area, int) {
		zero := *v.region
		zero.Address = 0
		return &zero, 0
	}},
	{"without the right", func(v *victim, o remoteOperation) (*area, int) {
		return v.whole.register(1024, 1024+victimSize, all&^o.right), 0
	}},
	{"to a region without remote rights", func(v *victim, _ remoteOperation) (*area, int) {
		return v.whole.register(1024, 1024+victimSize, verbs.LocalWrite), 0
	}},
	{"to a deregistered region", func(v *victim, _ remoteOperation) (*area, int) {
		v.region.deregister()
		return v.region, 0
	}},
	{"with the key of a dead region over the same memory", func(v *victim, _ remoteOperation) (*area, int) {
		v.region.deregister()
		v.whole.register(1024, 1024+victimSize, all)
		return v.region, 0
	}},
}

// keyed returns the region under another key.
func (v *victim) keyed(key uint32) *area {
	changed := *v.region
	changed.RKey = key
	return &changed
}

func accessViolations() []testCase {
	var cases []testCase
	for _, o := range remoteOperations {
		for _, breach := range violations {
			cases = append(cases, testCase{o.name + " " + breach.name, func(b *bench) {
				v := newVictim(b)
				target, offset := breach.aim(v, o)
				v.expectDenied(o, target, offset)
			}})
		}
	}
	return append(cases,
		testCase{"a long write one byte past the end", func(b *bench) {
			longViolation(b, func(target *area, mine segment) work { return target.write(1, 0, mine) })
		}},
		testCase{"a long read one byte past the end", func(b *bench) {
			longViolation(b, func(target *area, mine segment) work { return target.read(1, 0, mine) })
		}},
		testCase{"one right is enough", oneRight},
		testCase{"regions over the same memory", overlappingRegions},
		testCase{"a failure stops what was posted behind it", failureInBatch},
		testCase{"failures of unsignalled requests complete", unsignalledFailure},
	)
}

func newVictim(b *bench) *victim {
	b.Helper()
	near, far := b.two()
	whole := far.allocate(4096, all)
	whole.fill(1)
	return &victim{b, near, far, whole, whole.register(1024, 1024+victimSize, all)}
}

// expectDenied executes the operation on one of two connections.
func (v *victim) expectDenied(o remoteOperation, target *area, offset int) {
	v.Helper()
	p, pf := connected(v.near, v.far, sizes{})
	q, qf := connected(v.near, v.far, sizes{})
	mine := v.near.allocate(256, all)
	mine.fill(9)
	before := v.whole.load()
	pf.receive(1)

	later := v.whole.write(2, 3000, mine.at(64, 128))
	p.post(o.work(target, offset, mine.at(0, o.n)), later, later.silent())
	p.expectSent(failed(1, verbs.StatusRemoteAccess), failed(2, verbs.StatusFlushed), failed(2, verbs.StatusFlushed))
	p.expectError()
	p.post(later)
	p.expectSent(failed(2, verbs.StatusFlushed))
	v.whole.expect(before, "a "+o.name+" that is not allowed")
	for _, c := range pf.must(pollStep{pf.handle, true}).Completions {
		if c.Status != verbs.StatusFlushed {
			v.Fatalf("the target's receive completed as %+v", c)
		}
	}

	qf.receive(3)
	w := v.whole.writeImmediate(3, 3000, 33, mine.at(64, 128))
	q.post(w)
	q.expectSent(done(w))
	qf.expectReceived(gotImmediate(3, 64, 33))
	copy(before[3000:], mine.load()[64:128])
	v.whole.expect(before, "a write through another queue pair")
	p.quiet()
	q.quiet()
}

func longViolation(b *bench, request func(target *area, mine segment) work) {
	const size = 1 << 20
	near, far := b.pair(sizes{})
	whole, mine := far.allocate(size, all), near.allocate(size, all)
	want := whole.fill(1)
	mine.fill(2)
	near.post(request(whole.register(0, size-1, all), mine.every()))
	near.expectSent(failed(1, verbs.StatusRemoteAccess))
	near.expectError()
	whole.expect(want, "a request for one byte more than the region")
}

// oneRight checks that each operation needs its right and no other.
func oneRight(b *bench) {
	near, far := b.pair(sizes{})
	whole, mine := far.allocate(victimSize, all), near.allocate(64, all)
	mine.fill(1)
	for _, o := range remoteOperations {
		far.receive(1)
		w := o.work(whole.register(0, victimSize, o.right|writable(o.right)), 0, mine.at(0, o.n))
		near.post(w)
		near.expectSent(done(w))
	}
}

// writable returns the right that InfiniBand requires with a right to write remotely.
func writable(right verbs.Access) verbs.Access {
	if right == verbs.RemoteRead {
		return 0
	}
	return verbs.LocalWrite
}

func overlappingRegions(b *bench) {
	near, far := b.pair(sizes{})
	whole, mine := far.allocate(300, all), near.allocate(100, all)
	want, data := whole.fill(1), mine.fill(2)
	first, second := whole.register(0, 200, all), whole.register(100, 300, all)
	if first.RKey == second.RKey || first.RKey == whole.RKey || second.RKey == whole.RKey {
		b.Fatalf("regions share keys: %#x, %#x, %#x", whole.RKey, first.RKey, second.RKey)
	}
	w := first.write(1, 100, mine.every())
	near.post(w)
	near.expectSent(done(w))
	first.deregister()
	w = second.write(1, 100, mine.every())
	near.post(w)
	near.expectSent(done(w))
	copy(want[100:], data)
	copy(want[200:], data)
	whole.expect(want, "writes through two regions over the same memory")
}

func failureInBatch(b *bench) {
	near, far := b.pair(sizes{})
	to, mine := far.allocate(64, all), near.allocate(64, all)
	want, data := to.fill(1), mine.fill(2)
	bad := to.write(3, 0, mine.at(0, 8))
	bad.RKey ^= 0x100
	first, second := to.write(1, 8, mine.at(8, 16)), to.read(2, 16, mine.at(16, 24))
	near.receive(9, mine.at(0, 8))
	near.post(first, second, bad, to.write(4, 32, mine.at(8, 16)), send(5), to.read(6, 0, mine.at(40, 48)),
		to.fetchAdd(7, 0, 1, mine.at(48, 56)), to.writeImmediate(8, 0, 1))
	near.expectSent(done(first), done(second), failed(3, verbs.StatusRemoteAccess),
		failed(4, verbs.StatusFlushed), failed(5, verbs.StatusFlushed), failed(6, verbs.StatusFlushed),
		failed(7, verbs.StatusFlushed), failed(8, verbs.StatusFlushed))
	near.expectReceived(failed(9, verbs.StatusFlushed))
	near.receive(10)
	near.expectReceived(failed(10, verbs.StatusFlushed))
	copy(want[8:16], data[8:])
	to.expect(want, "a batch with a bad request in its middle")
	copy(data[16:24], want[16:])
	mine.expect(data, "a batch with a bad request in its middle, at the requester")
}

func unsignalledFailure(b *bench) {
	near, far := b.pair(sizes{})
	to, mine := far.allocate(64, all), near.allocate(64, all)
	bad := to.write(50, 60, mine.at(0, 8)).silent()
	var works []work
	var want []verbs.Completion
	for i := range uint64(4) {
		works = append(works, to.write(i, 0, mine.at(0, 8)).silent())
	}
	works = append(works, bad)
	want = append(want, failed(50, verbs.StatusRemoteAccess))
	for i := uint64(51); i < 54; i++ {
		works = append(works, to.write(i, 0, mine.at(0, 8)).silent())
		want = append(want, failed(i, verbs.StatusFlushed))
	}
	near.post(works...)
	near.expectSent(want...)
	if err := near.expectError(); fmt.Sprint(err) == "" {
		b.Fatal("the reason of the failure is empty")
	}
	near.quiet()
}

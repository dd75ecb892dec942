package shm

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
)

// Options for Open.
type Options struct {
	// Ranks is how many processes of this machine will map each other's
	// segments; it bounds the address space that each takes. Zero is 64.
	Ranks int
}

const (
	// addressSpace is shared out among the segments that one process maps.
	addressSpace  = 64 << 40
	maxSegment    = 1 << 40
	defaultRanks  = 64
	segmentStart  = hugePageBytes
	addressPrefix = "shm:"
)

// process is the form of a device whose peers are other processes.
type process struct {
	*device
	listener *listener
	watcher  *watcher

	// memory is the whole segment as it is mapped here, fd its memfd.
	memory []byte
	head   *segmentHead
	fd     int

	mu sync.Mutex
	// next is where the segment was never used; live are the allocations by
	// offset, spare the freed ones, which are used again only when next has
	// come to the end: who still uses freed memory meets nobody there as long
	// as that can be helped. They are in order, and no two touch.
	next  int
	live  map[int]int
	spare []extent
	peers map[string]*neighbor
	// awaiting are the connections on which an answer is awaited.
	awaiting map[*net.UnixConn]struct{}
	// shut: the device is being closed, so there are no more peers, questions and
	// goroutines; working are those that there are.
	shut    bool
	working sync.WaitGroup
}

type extent struct{ offset, length int }

// Open makes the device of this process, for processes of one machine.
func Open(options Options) (*Device, error) {
	ranks := options.Ranks
	if ranks == 0 {
		ranks = defaultRanks
	}
	if ranks < 1 {
		return nil, argumentError("Open: Ranks %d, must not be negative", ranks)
	}
	var name [16]byte
	if _, err := rand.Read(name[:]); err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	p := &process{live: make(map[int]int), peers: make(map[string]*neighbor), awaiting: make(map[*net.UnixConn]struct{}), next: segmentStart, fd: -1}
	p.device = &device{form: p, name: "shm", address: addressPrefix + hex.EncodeToString(name[:]), opened: time.Now(), pairs: make(map[uint32]*queuePair)}
	if err := p.open(ranks); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return &Device{p.device}, nil
}

func (p *process) open(ranks int) error {
	total, err := meminfo("MemTotal:")
	if err != nil {
		return fmt.Errorf("shm: %w", err)
	}
	size := int(min(total+segmentStart, addressSpace/uint64(ranks), maxSegment)) &^ (hugePageBytes - 1)
	if p.fd, err = unix.MemfdCreate("rma", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING); err != nil {
		return &verbs.CapabilityError{Device: "shm", Capability: "create a segment", Reason: "memfd_create is refused", Cause: err}
	}
	if err := unix.Ftruncate(p.fd, int64(size)); err != nil {
		return &verbs.CapabilityError{Device: "shm", Capability: "create a segment", Reason: fmt.Sprintf("a file of %d bytes in memory is refused", size), Cause: err}
	}
	// A peer that could shrink the file could take memory from under this process.
	if _, err := unix.FcntlInt(uintptr(p.fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		return &verbs.CapabilityError{Device: "shm", Capability: "seal its segment", Reason: "fcntl is refused", Cause: err}
	}
	if p.memory, err = mapAligned(p.fd, size, hugePageBytes, unix.MAP_SHARED|unix.MAP_NORESERVE); err != nil {
		return fmt.Errorf("shm: segment: %w", err)
	}
	_ = unix.Madvise(p.memory, unix.MADV_HUGEPAGE)
	if err := commit(p.fd, 0, segmentStart); err != nil {
		return err
	}
	p.head = headOf(p.memory)
	p.head.introduce(uint64(size))
	p.bell = &futexBell{&p.head.bell}
	if p.watcher, err = newWatcher(); err != nil {
		return err
	}
	p.listener, err = listen(p)
	return err
}

// commit backs a range of a segment with memory, so that touching it cannot fail.
func commit(fd, offset, length int) error {
	if err := checkMemory(length); err != nil {
		return fmt.Errorf("shm: %w", err)
	}
	for {
		err := unix.Fallocate(fd, 0, int64(offset), int64(length))
		switch {
		case err == nil:
			return nil
		case err == unix.EINTR:
			continue
		case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM):
			return fmt.Errorf("shm: %w: %d bytes of segment: %w", verbs.ErrMemory, length, err)
		default:
			return fmt.Errorf("shm: %d bytes of segment: %w", length, err)
		}
	}
}

// allocate carves n bytes from the segment.
func (p *process) allocate(n int) ([]byte, error) {
	length := (n + pageBytes - 1) &^ (pageBytes - 1)
	align := pageBytes
	if length >= hugePageBytes {
		align = hugePageBytes
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	offset, ok := p.place(length, align)
	if !ok {
		return nil, fmt.Errorf("shm: %w: %d bytes wanted of a segment of %d bytes", verbs.ErrMemory, n, len(p.memory))
	}
	if err := commit(p.fd, offset, length); err != nil {
		p.keep(extent{offset, length})
		return nil, err
	}
	memory := p.memory[offset : offset+n : offset+n]
	if err := populate(p.memory[offset : offset+length]); err != nil {
		p.giveBack(offset, length)
		return nil, fmt.Errorf("shm: %w: %w", verbs.ErrMemory, err)
	}
	p.live[offset] = length
	return memory, nil
}

// place finds room for length bytes: new, as long as there is some, else freed.
func (p *process) place(length, align int) (int, bool) {
	if length > len(p.memory) {
		return 0, false
	}
	offset := (p.next + align - 1) &^ (align - 1)
	if offset <= len(p.memory)-length {
		p.next = offset + length
		return offset, true
	}
	for i, e := range p.spare {
		offset := (e.offset + align - 1) &^ (align - 1)
		skip := offset - e.offset
		if e.length-skip < length {
			continue
		}
		p.spare = slices.Delete(p.spare, i, i+1)
		if skip > 0 {
			p.keep(extent{e.offset, skip})
		}
		if rest := e.length - skip - length; rest > 0 {
			p.keep(extent{offset + length, rest})
		}
		return offset, true
	}
	return 0, false
}

func (p *process) free(memory []byte) error {
	offset, ok := p.offsetOf(memory)
	p.mu.Lock()
	defer p.mu.Unlock()
	length, live := p.live[offset]
	if !ok || !live {
		return argumentError("FreeMemory: %d bytes that AllocateMemory did not give, or that were freed", len(memory))
	}
	delete(p.live, offset)
	p.giveBack(offset, length)
	return nil
}

func (p *process) giveBack(offset, length int) {
	_ = unix.Fallocate(p.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(offset), int64(length))
	p.keep(extent{offset, length})
}

// keep puts a piece among the spare ones, joined with those that it touches.
func (p *process) keep(e extent) {
	i, _ := slices.BinarySearchFunc(p.spare, e.offset, func(other extent, offset int) int { return other.offset - offset })
	from, to := i, i
	if i > 0 && p.spare[i-1].offset+p.spare[i-1].length == e.offset {
		from--
		e = extent{p.spare[from].offset, p.spare[from].length + e.length}
	}
	if i < len(p.spare) && e.offset+e.length == p.spare[i].offset {
		e.length += p.spare[i].length
		to++
	}
	p.spare = slices.Replace(p.spare, from, to, e)
}

// offsetOf is where memory is in the segment, and whether it is there.
func (p *process) offsetOf(memory []byte) (int, bool) {
	base := addressOf(p.memory)
	if len(memory) == 0 || !contains(base, uint64(len(p.memory)), addressOf(memory), uint64(len(memory))) {
		return 0, false
	}
	return int(addressOf(memory) - base), true
}

// publish enters a region in the table that peers read.
func (p *process) publish(r *region) error {
	offset, inside := p.offsetOf(r.memory)
	if !inside && r.access&verbs.RemoteAtomic != 0 && len(r.memory) > 0 {
		return &verbs.CapabilityError{Device: p.name, Capability: "grant remote atomics on memory of the program", Reason: "peers cannot map it; use AllocateMemory"}
	}
	entry := &p.head.regions[r.key%maxRegions]
	entry.address.Store(addressOf(r.memory))
	entry.length.Store(uint64(len(r.memory)))
	entry.access.Store(uint32(r.access))
	entry.offset.Store(notInSegment)
	if inside {
		entry.offset.Store(uint64(offset))
	}
	// The key comes last: who finds it finds the rest.
	entry.key.Store(r.key)
	return nil
}

// retract takes a region out of the table.
func (p *process) retract(r *region) { p.head.regions[r.key%maxRegions].key.Store(0) }

func (p *process) newRing() (ring, uint64, error) {
	memory, err := p.allocate(ringMemory)
	if err != nil {
		return ring{}, 0, err
	}
	offset, _ := p.offsetOf(memory)
	return ringOver(memory), uint64(offset), nil
}

func (p *process) freeRing(_ ring, locator uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if length, ok := p.live[int(locator)]; ok {
		delete(p.live, int(locator))
		p.giveBack(int(locator), length)
	}
}

// close lets go of everything of this process. Peers keep what they have mapped.
func (p *process) close() error {
	var err error
	if p.head != nil {
		p.head.closed.Store(1)
		p.bell.Ring()
	}
	p.shutOff()
	if p.listener != nil {
		err = p.listener.close()
	}
	if p.watcher != nil {
		err = errors.Join(err, p.watcher.close())
	}
	err = errors.Join(err, p.part())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fd >= 0 {
		err = errors.Join(err, unix.Close(p.fd))
		p.fd = -1
	}
	if p.memory != nil {
		err = errors.Join(err, retire(p, p.memory))
	}
	return err
}

// shutOff has nothing new begin, and ends the wait for answers.
func (p *process) shutOff() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = true
	for conn := range p.awaiting {
		_ = conn.Close()
	}
}

// part lets go of the peers, and of the goroutines that have to do with them.
func (p *process) part() error {
	p.mu.Lock()
	peers := p.peers
	p.peers = nil
	p.mu.Unlock()
	var err error
	for _, n := range peers {
		err = errors.Join(err, n.conn.Close())
	}
	p.working.Wait()
	for _, n := range peers {
		err = errors.Join(err, n.release())
	}
	return err
}

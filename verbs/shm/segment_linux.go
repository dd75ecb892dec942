package shm

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/verbs"
)

const (
	// addressSpace is divided among the segments that one process maps.
	addressSpace = 64 << 40
	maxSegment   = 1 << 40
	defaultRanks = 64
	// defaultHandshake is Options.HandshakeLimit if that is zero.
	defaultHandshake = 10 * time.Second
	segmentStart     = hugePageBytes
	addressPrefix    = "shm:"
)

// process is the form of a device whose peers are other processes.
type process struct {
	*device
	listener *listener
	watcher  *watcher
	// shortPatience is how long a connection waits for resources that this process is short of. Only tests change it
	// from defaultShortPatience.
	shortPatience time.Duration
	// handshakeLimit is Options.HandshakeLimit.
	handshakeLimit time.Duration
	// key is Options.Key or the key of SetKey.
	key atomic.Pointer[[]byte]

	// memory is the whole segment as it is mapped here, fd its memfd, retiredFD the memfd of retired mappings.
	memory        []byte
	head          *segmentHead
	fd, retiredFD int
	// smallPages is Options.SmallPages.
	smallPages bool

	mu sync.Mutex
	// allocations are those of the segment.
	allocations allocations
	peers       map[string]*neighbor
	// awaiting are the connections on which a response is awaited.
	awaiting map[*net.UnixConn]struct{}
	// shut: the device is being closed, so no new peers, requests and goroutines begin. working are the running
	// goroutines. ending is closed together with that.
	shut    bool
	ending  chan struct{}
	working sync.WaitGroup
}

// Open opens the device of this process, for processes of one machine. If a limit of the host prevents that, it returns
// a *verbs.CapabilityError.
func Open(options Options) (*Device, error) {
	ranks := options.Ranks
	if ranks == 0 {
		ranks = defaultRanks
	}
	if ranks < 1 {
		return nil, argumentError("Open: Ranks %d, must not be negative", ranks)
	}
	if options.HandshakeLimit < 0 {
		return nil, argumentError("Open: HandshakeLimit %v, must not be negative", options.HandshakeLimit)
	}
	var name [16]byte
	if _, err := rand.Read(name[:]); err != nil {
		return nil, fmt.Errorf("shm: %w", err)
	}
	p := &process{peers: make(map[string]*neighbor), awaiting: make(map[*net.UnixConn]struct{}), ending: make(chan struct{}), fd: -1, retiredFD: -1,
		smallPages: options.SmallPages, shortPatience: defaultShortPatience, handshakeLimit: cmp.Or(options.HandshakeLimit, defaultHandshake)}
	p.device = &device{form: p, name: deviceName, address: addressPrefix + hex.EncodeToString(name[:]), opened: time.Now(), pairs: make(map[uint32]*queuePair)}
	p.setKey(options.Key)
	if err := p.open(ranks); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return &Device{p.device}, nil
}

// open makes the segment and what serves it. Its failures are for a reason of the host.
func (p *process) open(ranks int) error {
	if err := checkUser(os.DirFS("/"), os.Geteuid()); err != nil {
		return err
	}
	total, err := meminfo(os.DirFS("/"), "MemTotal:")
	if err != nil {
		return unable("size its segment", err)
	}
	size := int(min(total+segmentStart, addressSpace/uint64(ranks), maxSegment)) &^ (hugePageBytes - 1)
	if err := checkAddressSpace(ranks, size); err != nil {
		return unable(fmt.Sprintf("map the segments of %d ranks", ranks), err)
	}
	if p.fd, err = memoryFile("rma", size); err != nil {
		return unable("create a segment", err)
	}
	if p.retiredFD, err = memoryFile("rma-retired", size); err != nil {
		return unable("create a segment", err)
	}
	if p.memory, err = mapShared(p.fd, size); err != nil {
		return unable("map its segment", err)
	}
	p.allocations = newAllocations(segmentStart, size)
	p.advise(p.memory)
	if err = checkMemory(segmentStart); err == nil {
		err = p.commit(0, segmentStart)
	}
	if err != nil {
		return unable("back its segment", err)
	}
	p.head = headOf(p.memory)
	p.head.introduce(uint64(size))
	p.channel = &futexChannel{&p.head.channel}
	if p.watcher, err = newWatcher(); err != nil {
		return unable("watch its peers", err)
	}
	p.listener, err = listen(p)
	return err
}

// memoryFile makes a memfd of size bytes, which has no pages yet.
func memoryFile(name string, size int) (fd int, err error) {
	fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, fmt.Errorf("memfd_create: %w", err)
	}
	if err = unix.Ftruncate(fd, int64(size)); err != nil {
		err = fmt.Errorf("ftruncate to %d bytes: %w", size, err)
		// A peer that could shrink the file could take memory from this process.
	} else if _, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		err = fmt.Errorf("sealing: %w", err)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// commit backs a range of the segment with memory, so that touching it cannot fail.
func (p *process) commit(offset, length int) error {
	if !p.smallPages {
		p.enlarge(offset, length)
	}
	switch err := fallocate(p.fd, 0, offset, length); {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.ENOMEM):
		return fmt.Errorf("shm: %w: %d bytes of segment: %w", verbs.ErrMemory, length, err)
	default:
		return fmt.Errorf("shm: %d bytes of segment: %w", length, err)
	}
}

// punch frees the memory of a range of a segment.
func punch(fd, offset, length int) error {
	return fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length)
}

// fallocate is the system call, repeated after signals.
func fallocate(fd int, mode uint32, offset, length int) error {
	for {
		if err := unix.Fallocate(fd, mode, int64(offset), int64(length)); err != unix.EINTR {
			return err
		}
	}
}

// reserve allocates n bytes from the segment.
func (p *process) reserve(n int) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > len(p.memory) {
		return nil, p.tooMuch(n)
	}
	length, align := wholePages(n)
	offset, ok := p.allocations.place(length, align)
	if !ok {
		return nil, p.tooMuch(n)
	}
	p.allocations.live[offset] = length
	return p.memory[offset : offset+n : offset+n], nil
}

// back backs memory of the segment with pages, which are then mapped here.
func (p *process) back(ctx context.Context, memory []byte) (int, error) {
	offset, inside := p.offsetOf(memory)
	if !inside {
		return 0, argumentError("BackMemory: %d bytes that ReserveMemory did not give", len(memory))
	}
	if err := checkMemory(len(memory)); err != nil {
		return 0, fmt.Errorf("shm: %w", err)
	}
	return inPieces(ctx, memory, backedPiece, func(piece []byte) error {
		if !p.enter() {
			return p.closedError("BackMemory")
		}
		defer p.working.Done()
		if err := p.commit(offset, len(piece)); err != nil {
			return err
		}
		offset += len(piece)
		if err := populate(piece); err != nil {
			return fmt.Errorf("shm: %w: %w", verbs.ErrMemory, err)
		}
		return nil
	})
}

// enter makes close wait for working.Done, unless close has begun. It reports whether close has not begun.
func (p *process) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.shut {
		p.working.Add(1)
	}
	return !p.shut
}

func (p *process) tooMuch(n int) error {
	return fmt.Errorf("shm: %w: %d bytes wanted of a segment of %d bytes", verbs.ErrMemory, n, len(p.memory))
}

func (p *process) free(memory []byte) error {
	offset, inside := p.offsetOf(memory)
	if !inside || !p.release(offset) {
		return argumentError("FreeMemory: %d bytes that AllocateMemory did not give, or that were freed", len(memory))
	}
	return nil
}

// release frees the allocation at offset. It reports whether there was one.
func (p *process) release(offset int) bool {
	p.mu.Lock()
	length, live := p.allocations.drop(offset)
	p.mu.Unlock()
	// Close frees everything at once.
	if !live || !p.enter() {
		return live
	}
	defer p.working.Done()
	// Without the mutex, because it takes long.
	at := offset
	giveBack(p.memory[offset:offset+length], func(piece []byte) error {
		begin := at
		at += len(piece)
		return punch(p.fd, begin, len(piece))
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allocations.keep(piece{offset, length})
	return true
}

// offsetOf returns the offset of memory in the segment, and whether it is in the segment.
func (p *process) offsetOf(memory []byte) (int, bool) {
	base := bounds.Address(p.memory)
	if len(memory) == 0 || !bounds.Contains(base, uint64(len(p.memory)), bounds.Address(memory), uint64(len(memory))) {
		return 0, false
	}
	return int(bounds.Address(memory) - base), true
}

// publish enters a region in the table that peers read.
func (p *process) publish(r *region) error {
	offset, inside := p.offsetOf(r.memory)
	if !inside && r.access&verbs.RemoteAtomic != 0 && len(r.memory) > 0 {
		return &verbs.CapabilityError{Device: p.name, Capability: "grant remote atomics on memory of the program", Reason: "peers cannot map it; use AllocateMemory"}
	}
	entry := &p.head.regions[r.key%maxRegions]
	entry.address.Store(bounds.Address(r.memory))
	entry.length.Store(uint64(len(r.memory)))
	entry.access.Store(uint32(r.access))
	entry.offset.Store(notInSegment)
	if inside {
		entry.offset.Store(uint64(offset))
	}
	// The key is stored last: a peer that loads it also sees the other fields.
	entry.key.Store(r.key)
	return nil
}

// retract removes a region from the table unless it was removed before: its entry may belong to another region by now.
func (p *process) retract(r *region) { p.head.regions[r.key%maxRegions].key.CompareAndSwap(r.key, 0) }

func (p *process) newRing() (ring, uint64, error) {
	memory, err := p.allocate(ringMemory)
	if err != nil {
		return ring{}, 0, err
	}
	offset, _ := p.offsetOf(memory)
	return ringOver(memory), uint64(offset), nil
}

func (p *process) freeRing(_ ring, locator uint64) { p.release(int(locator)) }

// close releases everything of this process. Peers keep what they have mapped.
func (p *process) close() error {
	var err error
	if p.head != nil {
		p.head.closed.Store(1)
		p.channel.Wake()
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
		err = errors.Join(err, retire(p, p.memory, p.retiredFD, len(p.memory)))
	}
	if p.retiredFD >= 0 {
		err = errors.Join(err, unix.Close(p.retiredFD))
		p.retiredFD = -1
	}
	return err
}

// shutOff prevents new work, and ends the wait for responses.
func (p *process) shutOff() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = true
	close(p.ending)
	for conn := range p.awaiting {
		_ = conn.Close()
	}
}

// part releases the peers, and the goroutines that serve them.
func (p *process) part() error {
	p.mu.Lock()
	peers := p.peers
	p.peers = nil
	p.mu.Unlock()
	var err error
	for _, n := range peers {
		// The connections of peers that are gone are closed already.
		if failed := n.conn.Close(); !errors.Is(failed, net.ErrClosed) {
			err = errors.Join(err, failed)
		}
	}
	p.working.Wait()
	for _, n := range peers {
		err = errors.Join(err, n.release())
	}
	return err
}

package verbstest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/onesided/rma/verbs"
)

// A network of cards in memory, as plain as the contract allows: everything is
// under one lock and happens when it is posted. It is there to check the suite
// itself: in order, a card passes; with a defect, it has to be caught.
type network struct {
	mu     sync.Mutex
	defect string
	cards  map[string]*card
	last   uint32 // of addresses, keys and numbers

	asking sync.Mutex
	asked  map[string]bool
}

func newNetwork(defect string) *network {
	return &network{defect: defect, cards: map[string]*card{}, asked: map[string]bool{}}
}

// broken tells whether the network has a defect, and takes down that a card can
// have it.
func (n *network) broken(defect string) bool {
	n.asking.Lock()
	defer n.asking.Unlock()
	if !n.asked[defect] {
		n.asked[defect] = true
	}
	return n.defect == defect
}

func (n *network) next() uint32 {
	n.last++
	return n.last * 2654435761
}

func (n *network) Open(testing.TB) verbs.Device {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := &card{network: n, address: fmt.Sprintf("card-%d", n.next()), keys: map[uint32]*cardRegion{}}
	if n.broken("addresses hold a space") {
		c.address += " 1"
	}
	c.bell.network = n
	n.cards[c.address] = c
	return c
}

type card struct {
	*network
	address   string
	bell      bell
	closed    bool
	keys      map[uint32]*cardRegion
	pairs     []*cardPair
	requests  []verbs.ConnectionRequest
	memory    [][]byte
	freed     [][]byte
	watches   []*watch
	neighbors map[string]*cardNeighbor
	clock     time.Duration
	// activity counts requests of peers, served those that are of memory.
	activity, served uint64
}

func (c *card) Activity() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.activity
}

func (c *card) Served() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.served
}

// Pending is false: what a card sends is there.
func (c *card) Pending() bool { return false }

var epoch = time.Now()

// maxCardMessage is the most bytes of one request.
const maxCardMessage = 16 << 20

func (c *card) Attributes() verbs.Attributes {
	return verbs.Attributes{
		Name: "card", MaxInline: 100, MaxSegments: 8, MaxMessage: maxCardMessage, CoherentAtomics: true,
	}
}

func (c *card) Costs() verbs.Costs { return verbs.Costs{Bandwidth: 1e9} }

func (c *card) Now() time.Duration {
	if c.broken("the clock goes back") {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.clock += time.Microsecond
		return c.clock % (100 * time.Microsecond)
	}
	return time.Since(epoch)
}

func (c *card) Copy(dst, src []byte) int {
	if c.broken("Copy tells the wrong length") {
		copy(dst, src)
		return len(src)
	}
	return copy(dst, src)
}

func (c *card) Channel() verbs.CompletionChannel { return &c.bell }

func (c *card) Address() string { return c.address }

func (c *card) AllocateMemory(n int) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, verbs.ErrClosed
	}
	if n < 0 || n > 1<<32 {
		if c.broken("absurd memory is a nameless error") {
			return nil, errors.New("card: no")
		}
		return nil, fmt.Errorf("card: %d bytes: %w", n, verbs.ErrMemory)
	}
	alignment := os.Getpagesize()
	if n >= 2<<20 && !c.broken("memory is not aligned") {
		alignment = 2 << 20
	}
	if c.broken("memory is handed out twice") || c.broken("memory is not zeroed again") {
		for i, old := range c.freed {
			if len(old) == n {
				if c.broken("memory is not zeroed again") {
					c.freed = append(c.freed[:i], c.freed[i+1:]...)
				} else {
					clear(old)
				}
				c.memory = append(c.memory, old)
				return old, nil
			}
		}
	}
	room := make([]byte, n+alignment)
	from := -int(addressOf(room)) & (alignment - 1)
	memory := room[from : from+n : from+n]
	c.memory = append(c.memory, memory)
	return memory, nil
}

func (c *card) FreeMemory(memory []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, m := range c.memory {
		if len(m) == len(memory) && len(m) > 0 && &m[0] == &memory[0] {
			if !c.broken("memory is freed twice") {
				c.memory = append(c.memory[:i], c.memory[i+1:]...)
			}
			c.freed = append(c.freed, m)
			return nil
		}
	}
	return errors.New("card: not memory of AllocateMemory")
}

func (c *card) own(memory []byte) bool {
	for _, m := range c.memory {
		if len(memory) == 0 || overlap(m, memory) {
			return true
		}
	}
	return false
}

type cardRegion struct {
	card    *card
	key     uint32
	address uint64
	memory  []byte
	kept    []byte
	access  verbs.Access
	own     bool
	ended   bool
}

func (c *card) RegisterMemory(memory []byte, access verbs.Access) (verbs.MemoryRegion, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, verbs.ErrClosed
	}
	wrong := access.Check()
	if c.broken("a weak region is for peers") && access&verbs.Weak != 0 {
		wrong = ""
	}
	if len(memory) == 0 || wrong != "" {
		return nil, fmt.Errorf("card: cannot register %d bytes: %s", len(memory), wrong)
	}
	r := &cardRegion{card: c, key: c.next(), address: addressOf(memory), memory: memory, access: access, own: c.own(memory)}
	if access&verbs.Weak != 0 && !c.broken("a weak region has its memory") {
		r.memory = nil
	}
	if c.broken("a weak region keeps its memory") {
		r.kept = memory
	}
	if c.broken("a stale key works for the next region") {
		for key, old := range c.keys {
			if old.ended && addressOf(old.memory) == r.address {
				r.key = key
			}
		}
	}
	c.keys[r.key] = r
	return r, nil
}

func (r *cardRegion) LKey() uint32 { return r.key }

func (r *cardRegion) Memory() []byte { return r.memory }

func (r *cardRegion) Remote() verbs.RemoteRegion {
	return verbs.RemoteRegion{Address: r.address, Length: uint64(len(r.memory)), RKey: r.key}
}

func (r *cardRegion) Deregister() error {
	r.card.mu.Lock()
	defer r.card.mu.Unlock()
	if (r.ended || r.card.closed) && !r.card.broken("a region is deregistered twice") {
		return fmt.Errorf("card: region %#x: %w", r.key, verbs.ErrClosed)
	}
	r.ended = true
	if !r.card.broken("a deregistered region is served") && !r.card.broken("a stale key works for the next region") {
		delete(r.card.keys, r.key)
	}
	return nil
}

// find checks a remote request and returns the bytes it is for.
func (c *card) find(address uint64, key uint32, n int, right verbs.Access) ([]byte, bool) {
	r := c.keys[key]
	if c.broken("the key is not checked") {
		for _, other := range c.keys {
			if address >= other.address && address-other.address < uint64(len(other.memory)) {
				r = other
			}
		}
	}
	if r == nil && c.broken("keys are good on every device") {
		for _, other := range c.cards {
			if r == nil {
				r = other.keys[key]
			}
		}
	}
	if r == nil || r.access&right == 0 && !c.broken("the right is not checked") {
		return nil, false
	}
	offset := address - r.address
	if c.broken("the range is checked with overflow") {
		if offset+uint64(n) > uint64(len(r.memory)) {
			return nil, false
		}
		return make([]byte, n), true
	}
	if c.broken("the range is checked at its beginning") && offset <= uint64(len(r.memory)) {
		return c.from(r.memory)[offset:][:n], true
	}
	if offset > uint64(len(r.memory)) || uint64(n) > uint64(len(r.memory))-offset {
		return nil, false
	}
	return r.memory[offset:][:n], true
}

// from is an allocation from where a part of it begins.
func (c *card) from(part []byte) []byte {
	for _, m := range c.memory {
		if within(m, part) {
			return m[addressOf(part)-addressOf(m):]
		}
	}
	return part
}

func (c *card) Close() error { return c.end(verbs.ErrDisconnected) }

// die ends the card as the end of its process would.
func (c *card) die() {
	class := verbs.ErrPeerGone
	if c.broken("a death is taken for an orderly end") {
		class = verbs.ErrDisconnected
	}
	_ = c.end(class)
}

func (c *card) end(class error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		if c.broken("a device is closed twice") {
			return verbs.ErrClosed
		}
		return nil
	}
	c.closed = true
	delete(c.cards, c.address)
	for _, p := range c.pairs {
		if p.peer != nil && !c.broken("a closed device goes unnoticed") {
			p.peer.fail(fmt.Errorf("card: %s: %w", c.address, class))
		}
		p.fail(verbs.ErrClosed)
		p.closed = true
	}
	for _, r := range c.requests {
		r.(*cardRequest).from.fail(verbs.ErrPeerGone)
	}
	for _, other := range c.cards {
		other.tell(c.address)
	}
	c.keys = map[uint32]*cardRegion{}
	c.bell.ring()
	return nil
}

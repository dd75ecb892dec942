package job

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/onesided/rma/aggregate/reduce"

	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/registration"
	"github.com/onesided/rma/verbs"
)

// cardKind is a kind of device, the better first.
type cardKind = registration.Kind

const (
	sharedCard  = registration.Shared
	networkCard = registration.Network
	cardKinds   = registration.Kinds
)

// Places are where a Region is found over each kind of card.
type Places = registration.RemoteRegions

// A Region is memory that every rank of the job can be given access to.
type Region = registration.Region

// The names of devices.
const (
	shmDevice = "shm"
	tcpDevice = "tcp"
	ibvDevice = "ibv"
)

var deviceNames = []string{shmDevice, tcpDevice, ibvDevice}

// networkOf names the device that reaches every rank: what the ranks were told to use, or an RDMA
// card where all have one, or else TCP.
func networkOf(ranks []introduction, device string) string {
	switch {
	case device == tcpDevice || device == ibvDevice:
		return device
	case slices.ContainsFunc(ranks, func(i introduction) bool { return i.rdma == 0 }):
		return tcpDevice
	}
	return ibvDevice
}

// A card is a device that this rank has opened, with the queue that everything of
// the World's completes into.
type card struct {
	kind   cardKind
	device verbs.Device
	// mapper is nil if the device maps no memory of others.
	mapper verbs.Mapper
	// watcher is nil if the device notices by itself that the peer of a connection has
	// ended, or is told by others.
	watcher verbs.Watcher
	// server is nil if the device needs no CPU for its peers. activity and served are the values that its methods of
	// these names returned last.
	server           verbs.Server
	activity, served uint64
	queue            verbs.CompletionQueue
	// links are all of those over the card, by queue pair.
	links map[uint32]*Link
	// last is the link with number lastNumber, if not nil: the one that was looked up last.
	last       *Link
	lastNumber uint32
	attributes verbs.Attributes
	// memory gets the program's memory to the card.
	memory *registration.Card
	// rings are nil if letters go better without.
	rings *rings
}

// link returns the link over a queue pair, nil if there is none.
func (c *card) link(number uint32) *Link {
	if c.last == nil || c.lastNumber != number {
		c.last, c.lastNumber = c.links[number], number
	}
	return c.last
}

// forget removes a queue pair from the links.
func (c *card) forget(number uint32) {
	delete(c.links, number)
	c.last = nil
}

// A queue holds what can complete before it is polled: the requests and receives of a
// link for each rank. Few ranks of a large job have anything to do with this
// one; a queue takes memory for what it has held only.
const (
	leastQueue   = 1 << 12
	queuePerRank = mostSends + linkReceives
)

// twice tells that a letter by ring takes two requests.
func (c *card) twice() bool { return !c.attributes.OrderedWrites && c.server == nil }

func newCard(kind cardKind, device verbs.Device, size int) (*card, error) {
	c := &card{kind: kind, device: device, links: make(map[uint32]*Link), attributes: device.Attributes()}
	c.mapper, _ = device.(verbs.Mapper)
	c.server, _ = device.(verbs.Server)
	perRank := queuePerRank
	if c.twice() {
		perRank += mostSends
	}
	var err error
	if c.queue, err = device.CreateCompletionQueue(max(leastQueue, perRank*size)); err != nil {
		return nil, err
	}
	if kind == networkCard {
		c.watcher, _ = device.(verbs.Watcher)
	}
	return c, nil
}

// A base is what a rank has before it knows the others: its devices, and its block of
// flags.
type base struct {
	devices registration.Devices
	cards   [cardKinds]*card
	home    *card
	block   []byte
	// contact is what the others need to know of it.
	contact contact
}

func newBase(devices registration.Devices, size int) (*base, error) {
	b := &base{devices: devices}
	for kind, device := range devices {
		if device == nil {
			continue
		}
		c, err := newCard(cardKind(kind), device, size)
		if err != nil {
			return nil, err
		}
		b.cards[kind] = c
		costs := device.Costs()
		b.contact.addresses[kind], b.contact.tolls[kind] = device.Address(), tollOf(&costs)
		if b.home == nil {
			b.home = c
		}
	}
	var err error
	if b.block, err = b.home.device.AllocateMemory(blockLength(size)); err != nil {
		return nil, err
	}
	// Ranks that do not map the block send messages, which are checked.
	region, err := devices.RegisterMapped(b.block)
	if err != nil {
		return nil, err
	}
	b.contact.block = region.Remote()
	return b, nil
}

func (b *base) close() error { return closeCards(&b.cards) }

func (w *World) closeCards() error {
	w.registry.Close()
	return closeCards(&w.cards)
}

func closeCards(cards *[cardKinds]*card) error {
	var err error
	for _, c := range cards {
		if c != nil {
			err = errors.Join(err, c.device.Close())
		}
	}
	return err
}

// Register makes memory known to every device of this rank, for atomics to its network card: see
// [registration.Registry.Register].
func (w *World) Register(memory []byte, access verbs.Access) (*Region, error) {
	return w.registry.Register(memory, access)
}

// RegisterElements is Register for a buffer of the program, which operations read and write, until stop is called.
func RegisterElements[T reduce.Element](w *World, buffer []T) (stop func() error, err error) {
	if err := made(w, "Register"); err != nil {
		return nil, err
	}
	if w.closed.Load() {
		return nil, fmt.Errorf("world: Register: %w", errWorldClosed)
	}
	r, err := w.Register(bytesOf(buffer), verbs.LocalWrite)
	switch {
	case err == nil:
	case w.closed.Load():
		// Close has closed a card meanwhile.
		return nil, fmt.Errorf("world: Register: %w", errWorldClosed)
	default:
		return nil, errtext.Errorf("world: Register: %w", err)
	}
	var once sync.Once
	return func() (err error) {
		once.Do(func() {
			err = r.DeregisterRest()
			// A program that keeps stop does not keep the buffer.
			r = nil
		})
		return err
	}, nil
}

// RegisterMapped makes memory known to the ranks that map it, for them to read and write,
// and to no others.
func (w *World) RegisterMapped(memory []byte) (*Region, error) {
	return w.registry.Devices().RegisterMapped(memory)
}

// Place is the one of rank's places that this rank uses.
func (w *World) Place(rank int, places *Places) verbs.RemoteRegion {
	return places[w.kindTo(rank)]
}

// Frames is how many messages, requests and answers this rank has sent over the network, 0 where it
// has none or the device does not count them. Acknowledgements by themselves, and what is sent through
// memory, are not counted.
func (w *World) Frames() uint64 {
	if c := w.cards[networkCard]; c != nil {
		if meter, ok := c.device.(verbs.Meter); ok {
			return meter.Frames()
		}
	}
	return 0
}

// mapsOthers tells whether there are ranks whose memory this one maps.
func (w *World) mapsOthers() bool {
	for rank := range w.size {
		if rank != w.rank && w.maps(rank) {
			return true
		}
	}
	return false
}

// Neighbor is the device of a rank whose memory can be mapped here, the own rank
// included. It is opened at first use. A rank that is reached by messages only is a
// *verbs.CapabilityError.
func (w *World) Neighbor(rank int) (verbs.Neighbor, error) {
	if n := w.neighbors[rank].Load(); n != nil {
		return *n, nil
	}
	if err := w.Failure(rank); err != nil {
		return nil, err
	}
	var n verbs.Neighbor
	switch {
	case w.maps(rank):
		var err error
		if w != w.root {
			n, err = w.root.Neighbor(w.inJob[rank])
		} else if n, err = w.home.mapper.Neighbor(w.addressOf(rank)); err == nil {
			w.keepFlags(rank, n)
		}
		if err != nil {
			return nil, w.blame(rank, err)
		}
	case rank == w.rank:
		n = self{w}
	default:
		return nil, &verbs.CapabilityError{Device: w.cardTo(rank).attributes.Name, Capability: fmt.Sprintf("map memory of rank %d", rank), Reason: "the ranks share no memory"}
	}
	w.neighbors[rank].Store(&n)
	return n, nil
}

// self is a rank as its own neighbor, where the device maps nothing. Its memory is
// at hand anyway.
type self struct{ w *World }

func (s self) Wake() { s.w.engine.Wake() }

func (s self) Map(verbs.RemoteRegion) ([]byte, error)                 { return nil, s.refuse() }
func (s self) ReadAt(_ []byte, _ verbs.RemoteRegion, _ uint64) error  { return s.refuse() }
func (s self) WriteAt(_ []byte, _ verbs.RemoteRegion, _ uint64) error { return s.refuse() }
func (s self) refuse() error {
	return &verbs.CapabilityError{Device: s.w.home.device.Attributes().Name, Capability: "map memory by its region", Reason: "a rank has its own memory at hand"}
}

// blame makes the disappearance of a peer's device the failure of its rank.
func (w *World) blame(rank int, err error) error {
	if errors.Is(err, verbs.ErrPeerGone) {
		w.failed(rank, err)
		return w.Failure(rank)
	}
	return err
}

// blockOf maps the block of flags of rank.
func (w *World) blockOf(rank int) ([]byte, error) {
	if rank == w.rank {
		return w.block, nil
	}
	n, err := w.Neighbor(rank)
	if err != nil {
		return nil, err
	}
	return w.mapBlock(rank, n)
}

// mapBlock is blockOf by the rank's device.
func (w *World) mapBlock(rank int, n verbs.Neighbor) ([]byte, error) {
	block, err := n.Map(w.Place(rank, &w.job.contacts[rank].block))
	if err != nil {
		// The process may have ended since it was met.
		return nil, w.blame(rank, err)
	}
	switch want := blockLength(w.size); {
	case len(block) < want:
		return nil, fmt.Errorf("world: rank %d has a block of %d bytes, not %d", rank, len(block), want)
	case bounds.Address(block)%lineBytes != 0:
		return nil, fmt.Errorf("world: rank %d has a block that begins at no multiple of %d bytes", rank, lineBytes)
	}
	return block, nil
}

package window

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/errtext"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
)

// A part is one rank's memory of a window that is being made, and how to give it
// back.
type part struct {
	memory  []byte
	regions []*job.Region
	control []byte
	// allocated is memory to free; nil if the memory is the program's.
	allocated []byte
	// backed is how many bytes of that, from the first on, have been backed by pages.
	backed int
	device verbs.Device
	// takesAtomics tells that the network card carries out atomics on it.
	takesAtomics bool
	// lent is the window that the memory is of, if that is served to a client.
	lent *core
}

const windowAccess = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead

// allocatePart makes this rank's part of count elements.
func allocatePart(w *job.World, count int, kind reduce.Kind) (part, error) {
	bytes, err := checkedBytes(count, kind)
	if err != nil || bytes == 0 {
		return part{}, err
	}
	device := w.Device()
	memory, err := verbs.ReserverOf(device).ReserveMemory(bytes)
	if err != nil {
		return part{}, fmt.Errorf("allocating %s of %v, %s: %w", errtext.Count(count, "element"), kind, errtext.Count(bytes, "byte"), err)
	}
	return part{memory: memory[:bytes], allocated: memory, device: device}, nil
}

// back backs the memory that was allocated. After the context's error it goes on where it was.
func (p *part) back(ctx context.Context) error {
	if p.backed == len(p.allocated) {
		return nil
	}
	backed, err := verbs.ReserverOf(p.device).BackMemory(ctx, p.allocated[p.backed:])
	p.backed += backed
	if err != nil {
		if over := ctx.Err(); over != nil && errors.Is(err, over) {
			// It is the caller's, of whatever device the memory is.
			err = errtext.Ended(ctx)
		}
		return fmt.Errorf("backing %s with memory: %w", errtext.Count(len(p.allocated), "byte"), err)
	}
	return nil
}

// ownPart makes this rank's part of the program's memory.
func ownPart(w *job.World, memory []byte) (part, error) {
	return part{memory: memory, device: w.Device()}, nil
}

// addControl allocates and registers the control block, and registers the memory. Ranks
// that do not map the block send messages, which are checked: they get no key to it.
func (p *part) addControl(w *job.World, s settings) error {
	p.device = w.Device()
	l := layoutOf(w.Size(), s.seats, uint64(len(p.memory)), s.slots)
	block, err := p.device.AllocateMemory(int(l.bytes))
	if err != nil {
		return fmt.Errorf("allocating %d bytes of control block: %w", l.bytes, err)
	}
	p.control = block
	region, err := w.RegisterMapped(block)
	if err != nil {
		return fmt.Errorf("registering %s of control block: %w", errtext.Count(len(block), "byte"), err)
	}
	p.regions = append(p.regions, region)
	if len(p.memory) == 0 {
		return nil
	}
	if region, err = p.register(w, s); err != nil {
		return fmt.Errorf("registering %s: %w", errtext.Count(len(p.memory), "byte"), err)
	}
	p.regions = append(p.regions, region)
	return nil
}

// register registers the memory, for atomics if they are asked for and the card grants them.
func (p *part) register(w *job.World, s settings) (*job.Region, error) {
	if own, _ := w.CardAtomics(); !s.cardAtomics || !own || alignmentOf(p.memory) < 8 {
		return w.Register(p.memory, windowAccess)
	}
	region, err := w.Register(p.memory, windowAccess|verbs.RemoteAtomic)
	var unable *verbs.CapabilityError
	if errors.As(err, &unable) {
		return w.Register(p.memory, windowAccess)
	}
	p.takesAtomics = err == nil
	return region, err
}

// release gives everything back that the part has.
func (p *part) release() error {
	var err error
	for _, region := range p.regions {
		err = errors.Join(err, region.Deregister())
	}
	for _, memory := range [][]byte{p.control, p.allocated} {
		if memory != nil {
			err = errors.Join(err, p.device.FreeMemory(memory))
		}
	}
	*p = part{}
	return err
}

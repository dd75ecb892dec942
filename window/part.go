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

// A part is one rank's memory of a window that is being made, with what is needed to free it.
type part struct {
	memory  []byte
	regions []*job.Region
	control []byte
	// allocated is the memory to free, or nil if the memory is the program's.
	allocated []byte
	// backed is how many bytes of allocated have been backed by pages, from the start.
	backed int
	device verbs.Device
	// takesAtomics is set if the network card applies atomics to the memory.
	takesAtomics bool
	// lent is the window whose memory this is, if the part serves a client.
	lent *core
}

const windowAccess = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteRead

// allocatePart makes this rank's part, of count elements.
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

// back backs the allocated memory with pages. After the error of a context another call continues.
func (p *part) back(ctx context.Context) error {
	if p.backed == len(p.allocated) {
		return nil
	}
	backed, err := verbs.ReserverOf(p.device).BackMemory(ctx, p.allocated[p.backed:])
	p.backed += backed
	if err != nil {
		if over := ctx.Err(); over != nil && errors.Is(err, over) {
			// This is the context of the caller, whatever the device says.
			err = errtext.Ended(ctx)
		}
		return fmt.Errorf("backing %s with memory: %w", errtext.Count(len(p.allocated), "byte"), err)
	}
	return nil
}

// ownPart makes this rank's part of memory of the program.
func ownPart(w *job.World, memory []byte) (part, error) {
	return part{memory: memory, device: w.Device()}, nil
}

// addControl allocates and registers the control block, and registers the memory. Ranks that do not map the control
// block get no key to it: they send messages, which are checked.
func (p *part) addControl(w *job.World, s settings) error {
	p.device = w.Device()
	l := layoutOf(w.Size(), s.Seats, uint64(len(p.memory)), s.Slots)
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

// register registers the memory. It does so for atomics if the window asks for them and the card grants them.
func (p *part) register(w *job.World, s settings) (*job.Region, error) {
	if own, _ := w.CardAtomics(); !s.CardAtomics || !own || alignmentOf(p.memory) < 8 {
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

// release frees everything that the part has.
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

//go:build ibverbs && cgo && linux

package ibv

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/logqueue"
	"github.com/onesided/rma/internal/loopback"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
)

const (
	defaultSilence   = 10 * time.Second
	defaultHandshake = 5 * time.Second
	// defaultAnswer is 4.096 us times 2 to the 16.
	defaultAnswer = 268435456 * time.Nanosecond
	// minLimit is the shortest Silence or HandshakeLimit. A shorter limit would measure how busy the machine is.
	minLimit = 50 * time.Millisecond
)

// Open opens a port of a card. If there is none that can be used, it returns a *verbs.CapabilityError.
func Open(options Options) (verbs.Device, error) {
	if options.Listen == "" {
		var err error
		if options.Listen, err = loopback.HostPort(); err != nil {
			return nil, fmt.Errorf("ibv: Open: %w", err)
		}
	}
	if options.Silence == 0 {
		options.Silence = defaultSilence
	}
	if options.HandshakeLimit == 0 {
		options.HandshakeLimit = max(min(defaultHandshake, options.Silence), minLimit)
	}
	if options.Answer == 0 {
		options.Answer = defaultAnswer
	}
	if options.Silence < minLimit || options.HandshakeLimit < minLimit {
		return nil, argumentError("Open: Silence is %v and HandshakeLimit %v, allowed are %v or more, or 0", options.Silence, options.HandshakeLimit, minLimit)
	}
	if options.MTU != 0 && mtuOf(options.MTU) == 0 {
		return nil, argumentError("Open: MTU is %d, allowed are 256, 512, 1024, 2048 and 4096, or 0 for the largest", options.MTU)
	}
	d := &device{opened: time.Now(), onDemand: options.OnDemand}
	var err error
	if d.timeout, err = timeoutOf(options.Answer); err != nil {
		return nil, argumentError("Open: %v", err)
	}
	d.channel = newArmedChannel(d.arm)
	d.queues.Store(new([]*completionQueue))
	d.regions.byKey = make(map[uint32]*region)
	if err := d.openCard(&options); err != nil {
		return nil, err
	}
	if err := d.openManager(&options); err != nil {
		d.card.close()
		return nil, err
	}
	d.calibrate()
	return d, nil
}

// openManager opens the connection manager and whatever else does not need the card's port.
func (d *device) openManager(options *Options) error {
	d.connectionManager = connectionManager{device: d, limit: options.HandshakeLimit}
	d.connectionManager.eventLog = eventLog{queue: logqueue.New(options.Logger), failures: make(map[string]*failures)}
	memory, err := shm.NewFabric().Open()
	if err != nil {
		return fmt.Errorf("ibv: %w", err)
	}
	d.memory = memory
	if err := d.watch.open(d); err != nil {
		return errors.Join(err, memory.Close())
	}
	if err := d.connectionManager.open(options); err != nil {
		d.watch.close()
		return errors.Join(err, memory.Close())
	}
	d.connectionManager.eventLog.address = d.address
	d.connectionManager.working.Go(d.connectionManager.serve)
	d.connectionManager.working.Go(d.connectionManager.connections.keep)
	return nil
}

// arm makes the next completion of every queue generate an event.
func (d *device) arm() {
	for _, c := range *d.queues.Load() {
		c.arm()
	}
}

func incapable(reason string, cause error) error {
	return &verbs.CapabilityError{Device: deviceName, Capability: "be opened", Reason: reason, Cause: cause}
}

// openCard opens the card whose port matches the options.
func (d *device) openCard(options *Options) error {
	name, number, err := parseDevice(options.Device)
	if err != nil {
		return argumentError("Open: Device: %v", err)
	}
	l, err := list()
	if err != nil {
		return incapable("the kernel knows no RDMA cards; load ib_uverbs and the card's driver (for one in software: rdma_rxe, and rdma link add)", err)
	}
	defer l.free()
	var found []string
	var faults []error
	for i := range l.cards {
		found = append(found, l.name(i))
		if name != "" && l.name(i) != name {
			continue
		}
		err := d.try(l, i, number, options)
		if err == nil {
			return nil
		}
		faults = append(faults, err)
	}
	switch {
	case len(faults) > 0:
		return errors.Join(faults...)
	case len(found) > 0:
		return incapable(fmt.Sprintf("there is no card %s (RMA_IBV_DEVICE); there are %s", name, strings.Join(found, ", ")), nil)
	}
	return incapable(noCards(), nil)
}

// noCards returns why the library lists no cards.
func noCards() string {
	var known []string
	entries, err := os.ReadDir("/sys/class/infiniband")
	for _, e := range entries {
		known = append(known, e.Name())
	}
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "there is no telling which cards there are: " + err.Error()
	case len(known) == 0:
		return "this host has no RDMA card that its kernel knows; load the card's driver (for one in software: rdma_rxe, and rdma link add)"
	case !exists("/dev/infiniband"):
		return fmt.Sprintf("the kernel has %s and no files in /dev/infiniband; load ib_uverbs, and in a container pass the files on", strings.Join(known, ", "))
	}
	return fmt.Sprintf("the kernel has %s, and libibverbs no driver for it; install those (ibverbs-providers, rdma-core)", strings.Join(known, ", "))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// try opens a card if it has the port and the port is active.
func (d *device) try(l *listed, i, number int, options *Options) (err error) {
	d.name = l.name(i)
	if !l.takesConnections(i) {
		return incapable(d.name+" has no reliable connections as those of InfiniBand and RoCE are (iWARP has its own kind, by librdmacm; EFA has none)", nil)
	}
	if d.card, err = l.open(i); err != nil {
		return d.unopened(l.file(i), err)
	}
	defer func() {
		if err != nil {
			d.card.close()
		}
	}()
	if d.limits, err = d.card.limits(); err != nil {
		return d.refused("asking for the card's attributes", err)
	}
	p, err := d.choosePort(number)
	if err != nil {
		return err
	}
	d.port, d.global, d.mtu = p.number, p.global, p.mtu
	if options.MTU != 0 {
		d.mtu = min(d.mtu, mtuOf(options.MTU))
	}
	if d.global {
		gids, err := d.card.gids(p.number)
		if err != nil {
			return d.refused(fmt.Sprintf("port %d: reading the table of GIDs", p.number), err)
		}
		if d.gid, err = chooseGID(gids, options.GID); err != nil {
			return incapable(fmt.Sprintf("%s port %d (RMA_IBV_GID): %v", d.name, p.number, err), nil)
		}
	}
	if options.OnDemand && !d.limits.pagesOnDemand {
		return incapable(d.name+" does not page on demand; leave Options.OnDemand out", nil)
	}
	if options.OnDemand && !d.limits.atomicsOnDemand {
		d.limits.atomics, d.limits.coherentAtomics = false, false
	}
	return d.measure(&p)
}

// unopened returns the error of a card that was not opened.
func (d *device) unopened(file string, cause error) error {
	path := "/dev/infiniband/" + file
	// The library's error is only that of the last way that it has tried.
	switch err := unix.Access(path, unix.R_OK|unix.W_OK); {
	case errors.Is(err, syscall.EACCES), errors.Is(cause, syscall.EACCES), errors.Is(cause, syscall.EPERM):
		return incapable(fmt.Sprintf("%s: this user may not open %s; give it the right to read and write there (most systems: group rdma)", d.name, path), syscall.EACCES)
	case errors.Is(err, syscall.ENOENT):
		return incapable(fmt.Sprintf("%s: there is no %s; load ib_uverbs, and in a container pass the file on", d.name, path), err)
	}
	return d.refused("opening the card, whose file is "+path, cause)
}

// choosePort returns the wanted port, or the first that is active.
func (d *device) choosePort(wanted int) (port, error) {
	if wanted > d.limits.ports {
		return port{}, incapable(fmt.Sprintf("%s has no port %d (RMA_IBV_DEVICE), it has %d", d.name, wanted, d.limits.ports), nil)
	}
	var states []string
	for n := 1; n <= d.limits.ports; n++ {
		if wanted != 0 && n != wanted {
			continue
		}
		p, err := d.card.port(n)
		if err != nil {
			return port{}, d.refused(fmt.Sprintf("asking for the state of port %d", n), err)
		}
		if p.state == portActive {
			return p, nil
		}
		states = append(states, fmt.Sprintf("port %d of %s is %v", n, d.name, p.state))
	}
	return port{}, incapable(strings.Join(states, ", ")+"; it has to be active: plug its cable in, set its network interface up, or, for InfiniBand, run a subnet manager", nil)
}

func randomPacket() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.BigEndian.Uint32(b[:]) >> 8
}

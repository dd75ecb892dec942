package channel_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/channel"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/verbs/tcp"
)

// A rank is one of two that are connected.
type rank struct {
	*channel.Poller
	device verbs.Device
	end    *channel.End
	number int
	// pause lets others go on.
	pause func()
	// bodies is how many bodies have ended.
	bodies *atomic.Int32
	began  time.Duration
	into   [16]channel.Arrival
}

// rigs run a body for two ranks over devices of a kind.
var rigs = []struct {
	name string
	run  func(t testing.TB, options channel.Options, body func(r *rank) error)
}{
	{"sim", func(t testing.TB, options channel.Options, body func(r *rank) error) {
		simulated(t, "infinihost-2003", options, body)
	}},
	{"shm", func(t testing.TB, options channel.Options, body func(r *rank) error) {
		fabric := shm.NewFabric()
		goroutines(t, func() (verbs.Device, error) { return fabric.Open() }, options, body)
	}},
	{"tcp", func(t testing.TB, options channel.Options, body func(r *rank) error) {
		goroutines(t, func() (verbs.Device, error) { return tcp.Open(tcp.Options{}) }, options, body)
	}},
}

// limit is how long a test waits.
const limit = await.Limit

// simulated runs the ranks as tasks in virtual time.
func simulated(t testing.TB, profile string, options channel.Options, body func(r *rank) error) {
	t.Helper()
	s := simtest.New(t, profile, 1)
	var bodies atomic.Int32
	ranks := []*rank{{device: s.Open(), number: 0, bodies: &bodies}, {device: s.Open(), number: 1, bodies: &bodies}}
	errs := make([]error, len(ranks))
	for i, r := range ranks {
		c := r.device.Channel()
		r.pause = func() {
			c.Sleep(c.Prepare(), time.Millisecond)
			c.Finish()
		}
		s.Go(fmt.Sprint("rank ", i), func() { errs[i] = r.start(ranks[0].device.Address(), options, body) })
	}
	require.NoError(t, s.Run())
	require.NoError(t, errors.Join(errs...))
}

// goroutines runs them as what they are.
func goroutines(t testing.TB, open func() (verbs.Device, error), options channel.Options, body func(r *rank) error) {
	t.Helper()
	var bodies atomic.Int32
	ranks := []*rank{{number: 0, bodies: &bodies}, {number: 1, bodies: &bodies}}
	for _, r := range ranks {
		var err error
		r.device, err = open()
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, r.device.Close()) })
		pauses := 0
		r.pause = func() {
			if pauses++; pauses%64 == 0 {
				runtime.Gosched()
			}
		}
	}
	errs := make(chan error)
	for _, r := range ranks {
		go func() { errs <- r.start(ranks[0].device.Address(), options, body) }()
	}
	require.NoError(t, errors.Join(<-errs, <-errs))
}

// start connects the rank, rank 0 accepting, and runs the body. Neither ends before the body of the
// other has.
func (r *rank) start(address string, options channel.Options, body func(r *rank) error) (err error) {
	r.began = r.device.Now()
	if r.Poller, err = channel.NewPoller(r.device, options); err != nil {
		return err
	}
	if r.number == 1 {
		r.end, err = r.Connect(address, nil)
	} else {
		var requests [1]verbs.ConnectionRequest
		err = r.until(func() bool { r.Poll(nil); return r.device.PollConnections(requests[:]) > 0 })
		if err == nil {
			r.end, err = r.Accept(requests[0])
		}
	}
	if err != nil {
		return err
	}
	if err = body(r); err != nil {
		return fmt.Errorf("rank %d: %w", r.number, err)
	}
	return errors.Join(r.awaitBodies(), r.Poller.Close())
}

// awaitBodies waits until the bodies of both ranks have ended.
func (r *rank) awaitBodies() error {
	r.bodies.Add(1)
	return r.until(func() bool { r.Poll(nil); return r.bodies.Load() == 2 })
}

// until pauses until done.
func (r *rank) until(done func() bool) error {
	for !done() {
		if r.device.Now()-r.began > limit {
			return errors.New("nothing comes any more")
		}
		r.pause()
	}
	return nil
}

package job_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/shortage"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/world"
)

// lacks calls f, which must find that this process can open no more descriptors.
func (s *script) lacks(f func() error) {
	end, err := shortage.Descriptors(0)
	s.OK(err)
	err = f()
	s.OK(end())
	s.Fails(err, syscall.EMFILE)
	s.Fails(err, verbs.ErrShortage)
	s.Check(job.Of(s.World).FailureCount() == 0, "%d ranks have failed", job.Of(s.World).FailureCount())
}

// recovers calls f until it hears no more of attempts that began in the shortage.
func (s *script) recovers(f func() error) {
	err := f()
	for errors.Is(err, verbs.ErrShortage) {
		err = f()
	}
	s.OK(err)
}

// soonShort has rank 0 give up a connection soon that it cannot make.
func soonShort() ([]world.Option, error) {
	return []world.Option{world.WithNetwork(func(rank int) (verbs.Device, error) {
		options := tcp.Options{Listen: "127.0.0.1:0"}
		if rank == 0 {
			options.HandshakeLimit = 3 * time.Second
		}
		return tcp.Open(options)
	})}, nil
}

// shortages has rank 0 lack descriptors for its first link, and for its first letter. The
// others do not need it meanwhile.
var shortages = jobtest.RegisterWith("short of descriptors", soonShort, scripted(func(s *script) {
	service := new(counting)
	defer job.Of(s.World).Serve(7, service)()
	job.Of(s.World).KeepProgress()
	// More than may wait for a connection.
	data := make([]int, 40_000)
	s.OK(jobtest.Hold("ready"))
	if s.me == 0 {
		told := false
		tell := func() error {
			l, err := job.Of(s.World).Link(1)
			if err != nil {
				return err
			}
			if !told {
				s.OK(l.Tell(&job.Message{Kind: job.FirstKind, Service: 7}, nil))
				told = true
			}
			return l.Flush(s.Ctx)
		}
		s.lacks(tell)
		s.recovers(tell)
		for i := range data {
			data[i] = i
		}
		s.lacks(func() error { return world.Broadcast(s.Ctx, s.World, 0, data) })
	}
	jobtest.Signal("enough")
	if s.me == 0 {
		s.recovers(func() error { return world.Broadcast(s.Ctx, s.World, 0, data) })
	} else {
		s.OK(jobtest.Hold("needed"))
		s.OK(world.Broadcast(s.Ctx, s.World, 0, data))
		for i, x := range data {
			s.Check(x == i, "%d was broadcast in the place of %d", x, i)
		}
	}
	s.OK(s.World.Barrier(s.Ctx))
	if s.me == 1 {
		s.Check(service.served.Load() == 1, "%d messages were served", service.served.Load())
	}
}))

// A rank that is short of descriptors hears so, and takes nobody for dead. What it was to
// send it sends when it has some again.
func TestShortOfDescriptors(t *testing.T) {
	t.Parallel()
	const n = 3
	job := jobtest.StartWith(t, n, shortages, func(int) []string { return []string{"RMA_DEVICE=tcp"} })
	each(n, func(rank int) { job.Await(rank, "ready") })
	each(n, job.Release)
	job.Await(0, "enough")
	job.Release(1)
	job.Release(2)
	for rank, err := range job.Wait() {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// shortShrinking has rank 0 lack the descriptors for the World that Shrink makes, but for its device, and shrink again when it has them.
var shortShrinking = register("short of descriptors, and shrinking", func(s *script) {
	s.OK(s.World.Barrier(s.Ctx))
	if s.me == 0 {
		end, err := shortage.Descriptors(10)
		s.OK(err)
		_, err = s.World.Shrink(s.Ctx)
		s.OK(end())
		s.Fails(err, verbs.ErrShortage)
		s.Check(strings.Contains(err.Error(), "raise RLIMIT_NOFILE (ulimit -n)"), "error is %v", err)
	}
	small, err := s.World.Shrink(s.Ctx)
	s.OK(err)
	s.OK(small.Barrier(s.Ctx))
	s.OK(s.World.Close())
	s.OK(small.Close())
})

// A rank that is short of descriptors says so before the others count on it in the World that they make.
func TestShrinkShortOfDescriptors(t *testing.T) {
	for i, device := range []string{"shm", "tcp"} {
		// Over TCP a device has descriptors of its own, so one rank more is needed.
		n := []int{4, 5}[i]
		for rank, err := range jobtest.StartWith(t, n, shortShrinking, func(int) []string { return []string{"RMA_DEVICE=" + device} }).Wait() {
			require.NoError(t, err, "%s: rank %d", device, rank)
		}
	}
}

package job_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

// startLog is what a rank that is a process was told when it joined.
var startLog struct {
	sync.Mutex
	bytes.Buffer
}

func (startLogWriter) Write(text []byte) (int, error) {
	startLog.Lock()
	defer startLog.Unlock()
	return startLog.Buffer.Write(text)
}

type startLogWriter struct{}

// limitedTo has ranks that are processes join under a limit of the host.
func limitedTo(limit func() error) func() ([]world.Option, error) {
	return func() ([]world.Option, error) {
		return []world.Option{world.WithLogger(slog.New(slog.NewTextHandler(startLogWriter{}, nil)))}, limit()
	}
}

func addressSpace() error {
	const most = 16 << 30
	return unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: most, Max: most})
}

// unsharedBody looks that ranks reach each other over TCP, and that rank 0 alone warns, once.
func unsharedBody(limit string) func(s *script) {
	return func(s *script) {
		other := (s.me + 1) % s.World.Size()
		s.Check(s.World.Route(other) == "tcp", "the route is %s", s.World.Route(other))
		s.OK(s.World.Barrier(s.Ctx))
		startLog.Lock()
		defer startLog.Unlock()
		log, warnings := withoutWaits(startLog.String()), 0
		if s.me == 0 {
			warnings = 1
		}
		s.Check(strings.Count(log, "level=WARN") == warnings, "%d warnings are wanted: %s", warnings, log)
		s.Check(strings.Contains(log, limit), "it names no %s: %s", limit, log)
	}
}

var (
	unsharedSpace = jobtest.RegisterWith("no address space to share", limitedTo(addressSpace), scripted(unsharedBody("RLIMIT_AS (ulimit -v) is 17179869184 bytes")))
	unsharedFiles = jobtest.RegisterWith("no descriptors to share", limitedTo(fewFiles), scripted(unsharedBody("needs 19 free file descriptors and has 1")))
	unsharedMemfd = jobtest.RegisterWith("no memfd to share", limitedTo(func() error { return jobtest.Refuse(unix.SYS_MEMFD_CREATE) }), scripted(unsharedBody("seccomp")))
)

// TestUnshared has ranks whose hosts do not let them share memory reach each other over TCP, and one of them warn.
func TestUnshared(t *testing.T) {
	t.Run("address space", func(t *testing.T) { jobtest.Processes(t, 2, unsharedSpace) })
	t.Run("descriptors", func(t *testing.T) {
		job := jobtest.StartWith(t, 3, unsharedFiles, func(rank int) []string {
			if rank == 0 {
				return nil
			}
			// Of these a device for shared memory takes about five.
			return []string{descriptorsVariable + "=17"}
		})
		for rank, err := range job.Wait() {
			require.NoError(t, err, "rank %d", rank)
		}
	})
	t.Run("memfd", func(t *testing.T) { jobtest.Processes(t, 3, unsharedMemfd) })
}

// forced has a rank find, before it joins, that a job of shared memory only is refused.
var forced = jobtest.RegisterWith("shared memory refused", func() ([]world.Option, error) {
	if err := jobtest.Refuse(unix.SYS_MEMFD_CREATE); err != nil {
		return nil, err
	}
	alone := func(_ context.Context, mine string) ([]string, error) { return []string{mine}, nil }
	_, err := world.New(context.Background(), 0, 1, alone, world.WithDevice("shm"))
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "memfd_create") {
		return nil, errors.Join(errors.New("shared memory that is refused is no CapabilityError"), err)
	}
	return nil, nil
}, scripted(func(s *script) { s.OK(s.World.Barrier(s.Ctx)) }))

// TestUnsharedForced looks that shared memory that is asked for by name, and refused, is an error.
func TestUnsharedForced(t *testing.T) {
	jobtest.Processes(t, 2, forced)
}

package job_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/bootstrap/pmi"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

// inherited is a descriptor that is Init's own, as that of a child would be.
func inherited(t *testing.T, file *os.File) string {
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	require.NoError(t, err)
	return strconv.Itoa(fd)
}

// joinAs sets the environment of a rank in this process.
func joinAs(t *testing.T, server *pmi.Server, rank int) {
	file, set, err := server.Child(rank, 0)
	require.NoError(t, err)
	defer file.Close()
	fd := inherited(t, file)
	environment(t, nil)
	t.Setenv("PMI_FD", fd)
	for _, variable := range set[1:] {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
}

// A job whose other ranks do not start is given up, by time or context.
func TestInitWaitsInVain(t *testing.T) {
	server := pmi.NewServer(2, pmi.Events{})
	defer server.Close()
	joinAs(t, server, 0)
	_, err := world.Init(ended)
	require.ErrorIs(t, err, context.Canceled)
	var missing context.Context
	_, err = world.Init(missing)
	require.ErrorIs(t, err, world.ErrArgument)
	_, err = world.Init(t.Context(), world.WithStartTimeout(10*time.Millisecond))
	require.ErrorContains(t, err, "world: Init: ")
	require.ErrorContains(t, err, "not all of 2 ranks started within 10ms")
}

// resources are this process's open files, by what they are, and mappings that
// others can share.
func resources() []string {
	var found []string
	files, _ := os.ReadDir("/proc/self/fd")
	for _, f := range files {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil {
			found = append(found, to)
		}
	}
	maps, _ := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "memfd:") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// A process whose World is closed has nothing left of it but the connection to its manager, which it had before.
var leavesNothing = register("leaves nothing", func(s *script) {
	for _, call := range longs.calls(s, 0, 1000) {
		call()
	}
	s.OK(s.World.Close())
	sockets := 0
	for _, r := range resources() {
		if strings.HasSuffix(r, "/memfd:rma-retired (deleted)") && !strings.HasPrefix(r, "/") {
			// Addresses of the segments, which have no pages and stay until the device is unreachable.
			continue
		}
		for _, kind := range []string{"memfd:", "pidfd"} {
			s.Check(!strings.Contains(r, kind), "after Close there is %s", r)
		}
		if strings.HasPrefix(r, "socket:") {
			sockets++
		}
	}
	s.Check(sockets == 1, "after Close there are %d sockets", sockets)
})

func TestProcessesLeaveNothing(t *testing.T) { jobtest.Processes(t, 3, leavesNothing) }

// Run and Init leave no goroutine and no file behind.
func TestRunLeavesNothing(t *testing.T) {
	environment(t, nil)
	once := func() {
		require.NoError(t, run(t, 3, func(s *script) { program(s, 10, 100, 1) }))
		require.Error(t, run(t, 3, func(s *script) {
			if s.me == 1 {
				runtime.Goexit()
			}
			s.OK(s.World.Barrier(s.Ctx))
		}))
		require.NoError(t, world.Run(t.Context(), 3, func(ctx context.Context, w *world.World) error {
			return errors.Join(w.Barrier(ctx), world.Broadcast(ctx, w, 1, make([]int, 1000)))
		}, world.WithDevice("tcp")))
		w, err := world.Init(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.Close())
	}
	once()
	files, goroutines := len(resources()), runtime.NumGoroutine()
	for range testsize.N(20) {
		once()
	}
	await.True(t, fmt.Sprintf("no more than %d files and %d goroutines", files, goroutines), func() bool {
		return runtime.NumGoroutine() <= goroutines && len(resources()) <= files
	})
}

// Rank 0 is blocked for as long as rank 1 waits.
var blocked = register("blocked", func(s *script) {
	for _, name := range []string{"Barrier", "Gather"} {
		s.Sleeps(0, name, func() {}, func(span time.Duration) {
			if s.me == 1 {
				time.Sleep(span) // computes
			}
			s.OK(waits[name](s, s.Ctx))
		})
	}
})

// A rank that waits long sleeps.
func TestBlockedSleeps(t *testing.T) {
	jobtest.Processes(t, 2, blocked)
	jobtest.Processes(t, 5, blocked)
}

// A thousand ranks (see manyRanks) run a mixed program in memory that is bounded by their
// connections.
func TestThousandRanks(t *testing.T) {
	require.NoError(t, run(t, manyRanks, func(s *script) { program(s, stepsOf(6), 20, 4) }))
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(status), "VmHWM:")
	require.True(t, ok)
	var kilobytes int
	_, err = fmt.Sscan(rest, &kilobytes)
	require.NoError(t, err)
	t.Logf("at most %d MB resident", kilobytes>>10)
	require.Less(t, kilobytes, 4<<20)
}

package window_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// Windows over the program's own memory, which ranks are not allowed to reach in others that share memory with them, so that
// all goes by messages.
var (
	unreachable = register("create without process_vm", func(s *script) {
		if s.World.Rank() == 1 {
			s.OK(jobtest.Refuse(unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV))
		}
		createUnreachable(s)
	})
	unidentified = jobtest.RegisterWith("create without pidfds", func() ([]world.Option, error) { return nil, jobtest.RefusePidfds() }, scripted(createUnreachable))
)

func createUnreachable(s *script) {
	// More than a message holds.
	memory := make([]int64, 3000)
	win, err := window.Create(s.Ctx, s.World, memory)
	s.OK(err)
	next, last := (s.World.Rank()+1)%s.World.Size(), (s.World.Rank()+s.World.Size()-1)%s.World.Size()
	s.OK(win.Fence(s.Ctx))
	s.OK(win.Put(pattern(s.World.Rank(), next, len(memory)), next, 0))
	s.OK(win.Fence(s.Ctx))
	equal(s, "put", memory, pattern(last, s.World.Rank(), len(memory)))
	got := make([]int64, len(memory))
	s.OK(win.Get(got, next, 0))
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	equal(s, "get", got, pattern(s.World.Rank(), next, len(memory)))
	s.OK(win.LockAll(s.Ctx))
	for target := range s.World.Size() {
		s.OK(win.Accumulate(window.Sum, got, target, 0))
		var old int64
		s.OK(win.FetchAndOp(window.Sum, 1, &old, target, 5))
	}
	s.OK(win.UnlockAll(s.Ctx))
	s.OK(s.World.Barrier(s.Ctx))
	sum := pattern(last, s.World.Rank(), len(memory))
	for from := range s.World.Size() {
		for i, x := range pattern(from, (from+1)%s.World.Size(), len(memory)) {
			sum[i] += x
		}
	}
	sum[5] += int64(s.World.Size())
	equal(s, "sums", memory, sum)
	s.OK(win.Close())
}

// TestCreateWithoutSystemCalls looks that messages do where the system calls are not
// permitted. It is of processes: goroutines need none.
func TestCreateWithoutSystemCalls(t *testing.T) {
	busy.Acquire(t)
	t.Run("processes", func(t *testing.T) { jobtest.Processes(t, 3, unreachable) })
	t.Run("hosts", func(t *testing.T) { jobtest.Hosts(t, 4, unreachable) })
}

// TestCreateWithoutPidfds looks that messages do where the system does not say whose memory a process's is.
func TestCreateWithoutPidfds(t *testing.T) {
	busy.Acquire(t)
	jobtest.Processes(t, 3, unidentified)
}

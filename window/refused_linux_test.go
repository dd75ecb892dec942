package window_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/window"
)

// unreachable makes windows over the program's own memory, which rank 1 is not
// allowed to reach in others that share memory with it, so that all goes by messages.
var unreachable = register("create without process_vm", func(s *script) {
	if s.w.Rank() == 1 {
		s.ok(jobtest.Refuse(unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV))
	}
	// More than a message holds.
	memory := make([]int64, 3000)
	win, err := window.Create(s.ctx, s.w, memory)
	s.ok(err)
	next, last := (s.w.Rank()+1)%s.w.Size(), (s.w.Rank()+s.w.Size()-1)%s.w.Size()
	s.ok(win.Fence(s.ctx))
	s.ok(win.Put(pattern(s.w.Rank(), next, len(memory)), next, 0))
	s.ok(win.Fence(s.ctx))
	equal(s, "put", memory, pattern(last, s.w.Rank(), len(memory)))
	got := make([]int64, len(memory))
	s.ok(win.Get(got, next, 0))
	s.ok(win.Fence(s.ctx, window.NoSucceed))
	equal(s, "get", got, pattern(s.w.Rank(), next, len(memory)))
	s.ok(win.LockAll(s.ctx))
	for target := range s.w.Size() {
		s.ok(win.Accumulate(window.Sum, got, target, 0))
		var old int64
		s.ok(win.FetchAndOp(window.Sum, 1, &old, target, 5))
	}
	s.ok(win.UnlockAll(s.ctx))
	s.ok(s.w.Barrier(s.ctx))
	sum := pattern(last, s.w.Rank(), len(memory))
	for from := range s.w.Size() {
		for i, x := range pattern(from, (from+1)%s.w.Size(), len(memory)) {
			sum[i] += x
		}
	}
	sum[5] += int64(s.w.Size())
	equal(s, "sums", memory, sum)
	s.ok(win.Close())
})

// TestCreateWithoutSystemCalls looks that messages do where the system calls are not
// permitted. It is of processes: goroutines need none.
func TestCreateWithoutSystemCalls(t *testing.T) {
	t.Run("processes", func(t *testing.T) { jobtest.Processes(t, 3, unreachable) })
	t.Run("hosts", func(t *testing.T) { jobtest.Hosts(t, 5, unreachable) })
}

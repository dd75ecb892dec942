package window_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world/worldtest"
)

// unreachable makes windows over the program's own memory, which rank 1 is not
// allowed to reach in rank 2.
var unreachable = register("create without process_vm", func(s *script) {
	if s.w.Rank() == 1 {
		s.ok(worldtest.Refuse(unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV))
	}
	memory := []int64{1, 2, 3}
	_, err := window.Create(s.ctx, s.w, memory)
	var create *window.CreateError
	s.check(errors.As(err, &create), "error is %v, want a *window.CreateError", err)
	s.check(create.Rank == 2, "it names rank %d: %v", create.Rank, err)
	for _, says := range []string{"process_vm_readv", "refused by the system"} {
		s.check(strings.Contains(err.Error(), says), "%q does not say %q", err, says)
	}
	s.fails(err, errors.ErrUnsupported)
	if s.w.Rank() == 1 {
		var missing *verbs.CapabilityError
		s.check(errors.As(err, &missing), "error is %v, want a *verbs.CapabilityError", err)
	}
	equal(s, "memory", memory, []int64{1, 2, 3})
	// Memory of the library needs no system call.
	win := allocate[int64](s, 3)
	s.ok(win.Fence(s.ctx))
	s.ok(win.Put(memory, (s.w.Rank()+1)%s.w.Size(), 0))
	s.ok(win.Fence(s.ctx, window.NoSucceed))
	equal(s, "window", win.Local(), memory)
	s.ok(win.Close())
})

// TestCreateRefused is of processes: goroutines need no system call.
func TestCreateRefused(t *testing.T) { worldtest.Processes(t, 3, unreachable) }

//go:build linux

package shm

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// futexChannel is an event channel in shared memory.
type futexChannel struct{ *channelWords }

const (
	futexWait = 0
	futexWake = 1
)

// Prepare announces a sleeper. See eventchannel.Channel.
func (c *futexChannel) Prepare() uint32 {
	c.sleepers.Add(1)
	return c.sequence.Load()
}

// Finish takes the announcement back.
func (c *futexChannel) Finish() { c.sleepers.Add(-1) }

// Sleep waits until Wake or WakeIfSleeping. The kernel compares sequence with ticket under its own lock, so a wake
// before the wait ends it.
func (c *futexChannel) Sleep(ticket uint32, limit time.Duration) {
	var timeout *unix.Timespec
	if limit >= 0 {
		t := unix.NsecToTimespec(limit.Nanoseconds())
		timeout = &t
	}
	// The scheduler must know of this call, because it may last.
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&c.sequence)), futexWait, uintptr(ticket), uintptr(unsafe.Pointer(timeout)), 0, 0)
}

// Wake wakes all sleepers.
func (c *futexChannel) Wake() {
	c.sequence.Add(1)
	wake(&c.sequence)
}

// WakeIfSleeping wakes all sleepers if there are any. Otherwise it is only a load.
func (w *channelWords) WakeIfSleeping() {
	if w.sleepers.Load() != 0 {
		w.sequence.Add(1)
		wake(&w.sequence)
	}
}

func wake(word *atomic.Uint32) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1<<30, 0, 0, 0)
}

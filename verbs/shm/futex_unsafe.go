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
func (b *futexChannel) Prepare() uint32 {
	b.sleepers.Add(1)
	return b.sequence.Load()
}

// Finish takes the announcement back.
func (b *futexChannel) Finish() { b.sleepers.Add(-1) }

// Sleep waits for a ring. The kernel compares sequence with ticket under its own lock, so a ring before the wait ends
// it.
func (b *futexChannel) Sleep(ticket uint32, limit time.Duration) {
	var timeout *unix.Timespec
	if limit >= 0 {
		t := unix.NsecToTimespec(limit.Nanoseconds())
		timeout = &t
	}
	// The scheduler must know of this call, because it may last.
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&b.sequence)), futexWait, uintptr(ticket), uintptr(unsafe.Pointer(timeout)), 0, 0)
}

// Ring wakes all sleepers.
func (b *futexChannel) Ring() {
	b.sequence.Add(1)
	wake(&b.sequence)
}

// WakeIfSleeping wakes all sleepers if there are any. Otherwise it is only a load.
func (b *channelWords) WakeIfSleeping() {
	if b.sleepers.Load() != 0 {
		b.sequence.Add(1)
		wake(&b.sequence)
	}
}

func wake(word *atomic.Uint32) {
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1<<30, 0, 0, 0)
}

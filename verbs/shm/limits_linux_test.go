package shm_test

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/shm"
)

// limit bounds what this process has of something from now on.
func limit(t *testing.T, resource int, most uint64) {
	var old unix.Rlimit
	require.NoError(t, unix.Getrlimit(resource, &old))
	require.NoError(t, unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: old.Max}))
}

// TestOpenLimited opens devices in processes whose host does not give what they need: the error names the limit, and
// nothing is left of them.
func TestOpenLimited(t *testing.T) {
	t.Parallel()
	refuse := func(call uint32) func(t *testing.T) {
		return func(t *testing.T) { require.NoError(t, jobtest.Refuse(call)) }
	}
	const profile = "perhaps by a container's profile of system calls"
	for _, test := range []struct {
		name, want string
		limit      func(t *testing.T)
	}{
		{"address space", "RLIMIT_AS (ulimit -v) is 8589934592 bytes", func(t *testing.T) { limit(t, unix.RLIMIT_AS, 8<<30) }},
		{"file size", "RLIMIT_FSIZE (ulimit -f) is 1048576 bytes", func(t *testing.T) { limit(t, unix.RLIMIT_FSIZE, 1<<20) }},
		{"descriptors", "RLIMIT_NOFILE (ulimit -n) is ", func(t *testing.T) {
			file, err := os.Open("/dev/null")
			require.NoError(t, err)
			limit(t, unix.RLIMIT_NOFILE, uint64(file.Fd())+1)
		}},
		{"descriptors for the watcher", "RLIMIT_NOFILE (ulimit -n) is ", func(t *testing.T) {
			file, err := os.Open("/dev/null")
			require.NoError(t, err)
			limit(t, unix.RLIMIT_NOFILE, uint64(file.Fd())+3)
		}},
		{"memfd_create", profile, refuse(unix.SYS_MEMFD_CREATE)},
		{"ftruncate", profile, refuse(unix.SYS_FTRUNCATE)},
		{"fcntl", profile, refuse(unix.SYS_FCNTL)},
		{"fallocate", profile, refuse(unix.SYS_FALLOCATE)},
		{"epoll_create1", profile, refuse(unix.SYS_EPOLL_CREATE1)},
		{"eventfd2", profile, refuse(unix.SYS_EVENTFD2)},
		{"epoll_ctl", profile, refuse(unix.SYS_EPOLL_CTL)},
		{"socket", profile, refuse(unix.SYS_SOCKET)},
		{"openat", profile, refuse(unix.SYS_OPENAT)},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !alone(t) {
				return
			}
			// The runtime has its own epoll from here on.
			in, out, err := os.Pipe()
			require.NoError(t, err)
			test.limit(t)
			_, err = shm.Open(shm.Options{Ranks: 2})
			require.NoError(t, errors.Join(in.Close(), out.Close()))
			var missing *verbs.CapabilityError
			require.ErrorAs(t, err, &missing)
			require.Equal(t, "shm", missing.Device)
			require.ErrorContains(t, err, test.want)
			require.Error(t, missing.Cause)
		})
	}
}

// TestCloseLimited closes devices that have mapped each other, where a process can have no more memory of its own, nor
// descriptors. Who is late finds the addresses, and nothing of anyone's.
func TestCloseLimited(t *testing.T) {
	if !alone(t) {
		return
	}
	near, far := openProcess(t), openProcess(t)
	memory, err := far.AllocateMemory(4096)
	require.NoError(t, err)
	region, err := far.RegisterMemory(memory, verbs.LocalWrite|verbs.RemoteWrite)
	require.NoError(t, err)
	neighbor, err := near.(verbs.Mapper).Neighbor(far.Address())
	require.NoError(t, err)
	mapped, err := neighbor.Map(region.Remote())
	require.NoError(t, err)
	mapped[0] = 9
	// Enough for the Go runtime, less than a segment.
	limit(t, unix.RLIMIT_DATA, 1<<30)
	limit(t, unix.RLIMIT_NOFILE, 0)
	require.NoError(t, near.Close())
	require.Zero(t, mapped[0])
	mapped[0] = 8
	require.EqualValues(t, 9, memory[0])
	require.NoError(t, far.Close())
	require.Zero(t, memory[0])
	memory[0] = 7
	require.EqualValues(t, 8, mapped[0])
	runtime.KeepAlive(near)
	runtime.KeepAlive(far)
}

// TestNoCallIsLong allocates, uses, frees and closes much memory in a process that the kernel kills when a system call
// that takes long by the byte is for more than 64 MiB.
func TestNoCallIsLong(t *testing.T) {
	for _, form := range []struct {
		name string
		open func() (*shm.Device, error)
	}{
		{"fabric", func() (*shm.Device, error) { return shm.NewFabric().Open() }},
		{"process", func() (*shm.Device, error) { return shm.Open(shm.Options{}) }},
	} {
		t.Run(form.name, func(t *testing.T) {
			if !alone(t) {
				return
			}
			require.NoError(t, jobtest.KillLong(64<<20))
			device, err := form.open()
			require.NoError(t, err)
			for range 2 {
				memory, err := device.AllocateMemory(150 << 20)
				require.NoError(t, err)
				memory[len(memory)-1] = 1
				require.NoError(t, device.FreeMemory(memory))
			}
			memory, err := device.AllocateMemory(70 << 20)
			require.NoError(t, err)
			memory[0] = 1
			require.NoError(t, device.Close())
		})
	}
}

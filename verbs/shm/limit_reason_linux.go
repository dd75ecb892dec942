package shm

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
)

// unable returns the error of a capability that the host denies.
func unable(capability string, err error) error {
	return &verbs.CapabilityError{Device: deviceName, Capability: capability, Reason: limitReason(err), Cause: err}
}

// A memoryKind is a kind of memory with its own limit.
type memoryKind struct {
	resource int
	name     string
	// field is the field of /proc/self/status with its current size.
	field string
}

var (
	addresses     = memoryKind{unix.RLIMIT_AS, "RLIMIT_AS (ulimit -v)", "VmSize:"}
	privateMemory = memoryKind{unix.RLIMIT_DATA, "RLIMIT_DATA (ulimit -d)", "VmData:"}
)

// A memoryError is the error of a system call that did not give this process more memory of a kind.
type memoryError struct {
	*memoryKind
	bytes uint64
	cause error
}

func (e *memoryError) Error() string { return e.cause.Error() }
func (e *memoryError) Unwrap() error { return e.cause }

// limit names the limit that has no room for the bytes, or returns "".
func (e *memoryError) limit() string {
	var set unix.Rlimit
	if unix.Getrlimit(e.resource, &set) != nil || set.Cur == unix.RLIM_INFINITY {
		return ""
	}
	// Without /proc only a request that exceeds the limit by itself is detected.
	used, _ := readField(os.DirFS("/"), "proc/self/status", e.field)
	if used<<10+e.bytes <= set.Cur {
		return ""
	}
	return fmt.Sprintf("%s is %d bytes", e.name, set.Cur)
}

// limitReason names the limit of the host that made the system refuse something.
func limitReason(err error) string {
	var short *memoryError
	if errors.As(err, &short) {
		if limit := short.limit(); limit != "" {
			return limit
		}
	}
	for _, limit := range []struct {
		errno    unix.Errno
		resource int
		format   string
	}{
		{unix.EAGAIN, unix.RLIMIT_MEMLOCK, "all memory is to be locked, and RLIMIT_MEMLOCK (ulimit -l) is %d bytes"},
		{unix.EFBIG, unix.RLIMIT_FSIZE, "RLIMIT_FSIZE (ulimit -f) is %d bytes"},
		{unix.EMFILE, unix.RLIMIT_NOFILE, "RLIMIT_NOFILE (ulimit -n) is %d"},
		{unix.ETOOMANYREFS, unix.RLIMIT_NOFILE, "the system passes no more descriptors between processes of this user than RLIMIT_NOFILE (ulimit -n), which is %d"},
	} {
		var set unix.Rlimit
		if errors.Is(err, limit.errno) && unix.Getrlimit(limit.resource, &set) == nil && set.Cur != unix.RLIM_INFINITY {
			return fmt.Sprintf(limit.format, set.Cur)
		}
	}
	switch {
	case errors.Is(err, verbs.ErrMemory):
		return "the machine, or a control group, has no memory left"
	case errors.Is(err, unix.ENOMEM):
		return "vm.overcommit_memory, vm.overcommit_ratio or vm.max_map_count allow no more"
	case errors.Is(err, unix.ENFILE):
		return "fs.file-max allows no more open files"
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOSYS):
		return "the system rejects it, perhaps by a container's profile of system calls (seccomp)"
	case errors.Is(err, unix.ENOENT):
		return "/proc is not mounted"
	}
	return "the system rejects it"
}

// checkAddressSpace checks that the address space limit of this process, if there is one, has room for a number of
// segments. Otherwise a peer could not be mapped later.
func checkAddressSpace(segments, size int) error {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return nil
	}
	memory, err := reserve(segments*size, hugePageBytes)
	if err != nil {
		return err
	}
	return unmap(memory)
}

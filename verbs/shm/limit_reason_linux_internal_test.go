//go:build linux

package shm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/verbs"
)

// A limit is named only where it is what the system has refused for: one of address space is for addresses, one of
// private memory for that, and only where they have no room for what was asked for.
func TestLimitBehind(t *testing.T) {
	// More than a process has addresses for, so nothing else in this one meets it.
	const most = 1 << 48
	for _, resource := range []int{unix.RLIMIT_AS, unix.RLIMIT_DATA} {
		var old unix.Rlimit
		require.NoError(t, unix.Getrlimit(resource, &old))
		if old.Max < most {
			t.Skipf("skipped: the hard limit is %d bytes, which bounds this test", old.Max)
		}
		require.NoError(t, unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: old.Max}))
		t.Cleanup(func() { require.NoError(t, unix.Setrlimit(resource, &old)) })
	}
	var descriptors unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &descriptors))
	const overcommit = "vm.overcommit_memory, vm.overcommit_ratio or vm.max_map_count allow no more"
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"memory of a control group": {fmt.Errorf("%w: %w", verbs.ErrMemory, unix.ENOMEM), "the machine, or a control group, has no memory left"},
		"a shared mapping":          {unix.ENOMEM, overcommit},
		"few addresses":             {&memoryError{&addresses, 1, unix.ENOMEM}, overcommit},
		"too many addresses":        {&memoryError{&addresses, most, unix.ENOMEM}, "RLIMIT_AS (ulimit -v) is 281474976710656 bytes"},
		"little private memory":     {&memoryError{&privateMemory, 1, unix.ENOMEM}, overcommit},
		"too much private memory":   {&memoryError{&privateMemory, most, unix.ENOMEM}, "RLIMIT_DATA (ulimit -d) is 281474976710656 bytes"},
		"descriptors on their way":  {unix.ETOOMANYREFS, fmt.Sprintf("the system passes no more descriptors between processes of this user than RLIMIT_NOFILE (ulimit -n), which is %d", descriptors.Cur)},
	} {
		require.Equal(t, c.want, limitReason(fmt.Errorf("mapping: %w", c.err)), name)
	}
}

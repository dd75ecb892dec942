//go:build linux

package shm

import (
	"errors"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// TestAvailableMemory looks at systems as files describe them.
func TestAvailableMemory(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		name  string
		files map[string]string
		want  uint64
	}{
		{"no groups", nil, 1024 * mib},
		{"in the root group, which has no files", map[string]string{"proc/self/cgroup": "0::/\n"}, 1024 * mib},
		{"no limit", map[string]string{
			"proc/self/cgroup":                 "0::/job\n",
			"sys/fs/cgroup/job/memory.max":     "max\n",
			"sys/fs/cgroup/job/memory.current": "5\n",
		}, 1024 * mib},
		{"the limit of a container", map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "104857600\n",
			"sys/fs/cgroup/memory.current": "4857600\n",
		}, 100_000_000},
		{"a nested limit", map[string]string{
			"proc/self/cgroup":                        "0::/job/step/task\n",
			"sys/fs/cgroup/job/memory.max":            "2000000\n",
			"sys/fs/cgroup/job/memory.current":        "500000\n",
			"sys/fs/cgroup/job/step/memory.max":       "1000000\n",
			"sys/fs/cgroup/job/step/memory.current":   "300000\n",
			"sys/fs/cgroup/job/step/task/memory.max":  "max\n",
			"sys/fs/cgroup/job/step/task/memory.stat": "inactive_file 9\n",
		}, 700_000},
		{"files in the cache", map[string]string{
			"proc/self/cgroup":                 "0::/job\n",
			"sys/fs/cgroup/job/memory.max":     "1000\n",
			"sys/fs/cgroup/job/memory.current": "900\n",
			"sys/fs/cgroup/job/memory.stat":    "anon 400\nfile 500\ninactive_file 300\n",
		}, 400},
		{"more used than the limit", map[string]string{
			"proc/self/cgroup":                 "0::/job\n",
			"sys/fs/cgroup/job/memory.max":     "1000\n",
			"sys/fs/cgroup/job/memory.current": "1900\n",
		}, 0},
		{"the first version", map[string]string{
			"proc/self/cgroup": "7:cpu,cpuacct:/job\n5:hugetlb,memory:/job\n0::/other\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "5000\n",
			"sys/fs/cgroup/memory/job/memory.usage_in_bytes": "2000\n",
			"sys/fs/cgroup/memory/job/memory.stat":           "cache 7\ntotal_inactive_file 500\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes":     "9000\n",
		}, 3500},
		{"a group out of sight", map[string]string{
			"proc/self/cgroup":             "0::/../../elsewhere\n",
			"sys/fs/cgroup/memory.max":     "1000\n",
			"sys/fs/cgroup/memory.current": "0\n",
		}, 1000},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 2097152 kB\nMemAvailable: 1048576 kB\n")}}
			for name, text := range test.files {
				root[name] = &fstest.MapFile{Data: []byte(text)}
			}
			available, err := availableMemory(root)
			require.NoError(t, err)
			require.Equal(t, test.want, available)
		})
	}
	_, err := availableMemory(fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 1 kB\n")}})
	require.ErrorContains(t, err, "no MemAvailable: in /proc/meminfo")
	available, err := availableMemory(os.DirFS("/"))
	require.NoError(t, err)
	require.Positive(t, available)
}

// What is small is backed without another look for a while, what is not small never is.
func TestMemoryBudget(t *testing.T) {
	const gib = 1 << 30
	available, looks := uint64(gib), 0
	look := func() (uint64, error) { looks++; return available, nil }
	var b budget
	now := time.Unix(0, 0)
	check := func(size uint64, wantLooks int) error {
		t.Helper()
		looks = 0
		err := b.check(size, now, look)
		require.Equal(t, wantLooks, looks)
		return err
	}
	share := uint64(gib-4096) / budgetShare
	require.NoError(t, check(4096, 1))
	available = 0
	require.NoError(t, check(share/2, 0))
	require.NoError(t, check(share-share/2, 0))
	require.ErrorIs(t, check(1, 1), verbs.ErrMemory)
	available = gib
	require.NoError(t, check(4096, 1))
	require.ErrorIs(t, check(2*gib, 1), verbs.ErrMemory)
	require.ErrorContains(t, check(share+1+gib, 1), "1074790397 bytes wanted, 1073741824 available")
	now = now.Add(budgetTime)
	require.NoError(t, check(4096, 1))
	look = func() (uint64, error) { looks++; return 0, errors.New("no such file") }
	require.NoError(t, check(gib, 1))
}

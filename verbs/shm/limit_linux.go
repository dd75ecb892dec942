package shm

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/onesided/rma/verbs"
)

// checkMemory returns an error for more memory than the machine, or this process's control groups, have free: touching
// it would end the process.
func checkMemory(size int) error {
	return small.check(uint64(size), time.Now(), func() (uint64, error) { return availableMemory(os.DirFS("/")) })
}

// small is the budget of memory that may be backed without a look at the available memory. A look reads several files,
// which takes longer than backing a few pages.
var small budget

// A budget is a share of the available memory. It is so small that all processes of a host may spend theirs, and valid
// for so short a time that the available memory hardly changes.
type budget struct {
	mu    sync.Mutex
	left  uint64
	until time.Time
}

const (
	budgetShare = 1024
	budgetTime  = time.Second
)

// check returns an error if less than size bytes are available.
func (b *budget) check(size uint64, now time.Time, look func() (uint64, error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if size <= b.left && now.Before(b.until) {
		b.left -= size
		return nil
	}
	available, err := look()
	if err != nil {
		// The system does not report the available memory, so any size is accepted.
		return nil
	}
	if size > available {
		return fmt.Errorf("%w: %d bytes wanted, %d available", verbs.ErrMemory, size, available)
	}
	b.left, b.until = (available-size)/budgetShare, now.Add(budgetTime)
	return nil
}

// availableMemory returns the least of what the machine and the nested control groups of this process have left.
func availableMemory(root fs.FS) (uint64, error) {
	available, err := meminfo(root, "MemAvailable:")
	if err != nil {
		return 0, err
	}
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return available, nil
	}
	for line := range strings.Lines(string(own)) {
		// A line is hierarchy:controllers:path; version 2 names no controller.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for _, version := range groupVersions {
			if len(fields) == 3 && slices.Contains(strings.Split(fields[1], ","), version.controller) {
				available = min(available, version.available(root, fields[2]))
			}
		}
	}
	return available, nil
}

// groupVersion has the files in which a version of control groups reports its limits.
type groupVersion struct {
	controller, mount, limit, used, cache string
}

var groupVersions = []groupVersion{
	{"", "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
	{"memory", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
}

// available returns what a group, and the groups around it, have left. Memory that only caches files counts as free. A
// group without a limit says so by a word, or has no such file.
func (v groupVersion) available(root fs.FS, group string) uint64 {
	available := ^uint64(0)
	for at := path.Clean("/" + group); ; at = path.Dir(at) {
		limit, err1 := readNumber(root, v.mount+path.Join(at, v.limit))
		used, err2 := readNumber(root, v.mount+path.Join(at, v.used))
		if err1 == nil && err2 == nil {
			cache, err := readField(root, v.mount+path.Join(at, "memory.stat"), v.cache)
			if err == nil {
				used -= min(used, cache)
			}
			available = min(available, limit-min(limit, used))
		}
		if at == "/" {
			return available
		}
	}
}

func readNumber(root fs.FS, name string) (uint64, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64)
}

// readField returns the number after a word that begins a line of a file.
func readField(root fs.FS, name, field string) (uint64, error) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == field {
			return strconv.ParseUint(words[1], 10, 54)
		}
	}
	return 0, fmt.Errorf("shm: no %s in /%s", field, name)
}

// meminfo returns a figure of the machine's memory in bytes.
func meminfo(root fs.FS, field string) (uint64, error) {
	kib, err := readField(root, "proc/meminfo", field)
	return kib << 10, err
}

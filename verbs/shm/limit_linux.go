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

	"github.com/onesided/rma/verbs"
)

// checkMemory refuses what the machine, or this process's control groups, do not have
// free: touching it would end the process.
func checkMemory(size int) error {
	available, err := availableMemory(os.DirFS("/"))
	if err == nil && uint64(size) > available {
		return fmt.Errorf("%w: %d bytes wanted, %d available", verbs.ErrMemory, size, available)
	}
	return nil
}

// availableMemory is the least of what the machine and the control groups that this
// process is in, one within the other, have left.
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

// groupVersion is where a version of control groups says what it limits.
type groupVersion struct {
	controller, mount, limit, used, cache string
}

var groupVersions = []groupVersion{
	{"", "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
	{"memory", "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
}

// available is what a group, and those that it is in, have left; what only caches files
// goes when memory is wanted. A group that has no limit says so by a word, or has no
// such file.
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

// readField is the number behind a word that begins a line of a file.
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

// meminfo is a figure of the machine's memory in bytes.
func meminfo(root fs.FS, field string) (uint64, error) {
	kib, err := readField(root, "proc/meminfo", field)
	return kib << 10, err
}

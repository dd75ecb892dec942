package shm

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/onesided/rma/verbs"
)

// checkMemory refuses what the machine, or this process's control group, does not
// have free: touching it would end the process.
func checkMemory(size int) error {
	available, err := availableMemory()
	if err == nil && uint64(size) > available {
		return fmt.Errorf("%w: %d bytes wanted, %d available", verbs.ErrMemory, size, available)
	}
	return nil
}

// availableMemory is the lesser of what the machine and the control group have left.
func availableMemory() (uint64, error) {
	available, err := meminfo("MemAvailable:")
	if err != nil {
		return 0, err
	}
	limit, err1 := readNumber("/sys/fs/cgroup/memory.max")
	used, err2 := readNumber("/sys/fs/cgroup/memory.current")
	if err1 == nil && err2 == nil && used <= limit {
		available = min(available, limit-used)
	}
	return available, nil
}

func readNumber(path string) (uint64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

func meminfo(field string) (uint64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == field {
			kib, err := strconv.ParseUint(words[1], 10, 54)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("shm: no %s in /proc/meminfo", field)
}

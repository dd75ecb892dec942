package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc. Linux has it on all processors that Go supports.
const tick = 10 * time.Millisecond

// processorTime returns the processor time of a process, and that of all processes that it has started, including
// ended ones.
func processorTime(pid int) (own, others time.Duration, ok bool) {
	own, others, ok = timesOf(pid)
	for _, child := range children(pid) {
		if a, b, alive := processorTime(child); alive {
			others += a + b
		}
	}
	return own, others, ok
}

// The fields of /proc/PID/stat after the program's name, which may contain spaces.
const (
	userField = 11 + iota
	systemField
	childUserField
	childSystemField
)

// timesOf returns a process's own time, and that of its ended children.
func timesOf(pid int) (own, ended time.Duration, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, false
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) <= childSystemField {
		return 0, 0, false
	}
	ticks := func(field int) time.Duration {
		n, _ := strconv.ParseInt(fields[field], 10, 64)
		return time.Duration(n) * tick
	}
	return ticks(userField) + ticks(systemField), ticks(childUserField) + ticks(childSystemField), true
}

// children returns the processes that any thread of a process has started.
func children(pid int) (all []int) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	for _, thread := range threads {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

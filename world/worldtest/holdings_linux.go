package worldtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"
)

// holding is what a process has that a World could leave behind.
type holding struct {
	goroutines int
	// files are what its descriptors are of, and mapped what memory it shares.
	files, mapped []string
}

// holdings are those of this process. The runtime's own descriptors are there before.
func holdings() (*holding, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("worldtest: %w", err)
	}
	if err := errors.Join(in.Close(), out.Close()); err != nil {
		return nil, fmt.Errorf("worldtest: %w", err)
	}
	h := &holding{goroutines: runtime.NumGoroutine()}
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return nil, fmt.Errorf("worldtest: %w", err)
	}
	for _, link := range links {
		// The descriptor that lists the others is gone.
		if of, err := os.Readlink(link); err == nil {
			h.files = append(h.files, of)
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, fmt.Errorf("worldtest: %w", err)
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "memfd:") || strings.Contains(line, "/dev/shm/") {
			h.mapped = append(h.mapped, strings.TrimSpace(line))
		}
	}
	return h, nil
}

// settleLimit is for what a goroutine that ends holds yet.
const settleLimit = 10 * time.Second

// remain returns when this process holds no more than it did, or with what it does.
func (h *holding) remain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	for {
		runtime.GC()
		now, err := holdings()
		if err != nil {
			return err
		}
		if now.goroutines <= h.goroutines && len(now.files) <= len(h.files) && len(now.mapped) <= len(h.mapped) {
			return nil
		}
		select {
		case <-ctx.Done():
			return h.compare(now)
		case <-time.After(time.Millisecond):
		}
	}
}

var errRemains = errors.New("worldtest: after its World was closed the process still holds")

// compare says what a process has more than before.
func (h *holding) compare(now *holding) error {
	var all strings.Builder
	for _, lists := range [][2][]string{{h.files, now.files}, {h.mapped, now.mapped}} {
		for _, of := range lists[0] {
			if at := slices.Index(lists[1], of); at >= 0 {
				lists[1] = slices.Delete(lists[1], at, at+1)
			}
		}
		fmt.Fprintf(&all, " %q", lists[1])
	}
	if now.goroutines > h.goroutines {
		fmt.Fprintf(&all, " %d goroutines in place of %d:\n", now.goroutines, h.goroutines)
		_ = pprof.Lookup("goroutine").WriteTo(&all, 1)
	}
	return fmt.Errorf("%w%s", errRemains, all.String())
}

package jobtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/onesided/rma/internal/await"
)

// resources are the resources of a process that a World could leave behind.
type resources struct {
	goroutines int
	// files are the files of its descriptors, and mapped the memory that it shares.
	files, mapped []string
}

// currentResources returns the resources of this process. It opens a pipe first, so that the runtime's own descriptors
// already exist.
func currentResources() (*resources, error) {
	in, out, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("jobtest: %w", err)
	}
	if err := errors.Join(in.Close(), out.Close()); err != nil {
		return nil, fmt.Errorf("jobtest: %w", err)
	}
	r := &resources{goroutines: runtime.NumGoroutine()}
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return nil, fmt.Errorf("jobtest: %w", err)
	}
	for _, link := range links {
		// The descriptor that lists the others is closed by now. Under the race detector package tcp keeps a
		// descriptor of the null device for good.
		if of, err := os.Readlink(link); err == nil && of != os.DevNull {
			r.files = append(r.files, of)
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, fmt.Errorf("jobtest: %w", err)
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "memfd:") || strings.Contains(line, "/dev/shm/") {
			r.mapped = append(r.mapped, strings.TrimSpace(line))
		}
	}
	return r, nil
}

// settleLimit bounds the time in which an ending goroutine releases what it holds.
var settleLimit = time.Minute

// remain returns when this process holds nothing that it did not hold before. Otherwise it returns an error with what
// it holds.
func (r *resources) remain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	var failed, remains error
	err := await.Until(ctx, "the process to hold nothing more", func() bool {
		remains, failed = r.more()
		return failed != nil || remains == nil
	})
	if err != nil {
		return remains
	}
	return failed
}

// more returns an error with what this process holds that it did not hold before, if there is anything.
func (r *resources) more() (remains, failed error) {
	runtime.GC()
	now, err := currentResources()
	if err != nil {
		return nil, err
	}
	files, mapped := without(now.files, r.files), without(now.mapped, r.mapped)
	if now.goroutines <= r.goroutines && len(files) == 0 && len(mapped) == 0 {
		return nil, nil
	}
	return fmt.Errorf("%w %q %q, %d goroutines in place of %d:\n%s", errRemains, files, mapped, now.goroutines, r.goroutines, stacks()), nil
}

var errRemains = errors.New("jobtest: after its World was closed the process still holds")

// without returns list without the elements of other, each as often as it occurs there.
func without(list, other []string) []string {
	for _, text := range other {
		if at := slices.Index(list, text); at >= 0 {
			list = slices.Delete(list, at, at+1)
		}
	}
	return list
}

// Package await lets tests wait for a state instead of a time.
//
//	await.True(t, "the queue to be empty", func() bool { return queue.Len() == 0 })
//
// Every wait ends after Limit with an error that names the state. The limit ends a hang: no test may depend on it.
package await

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

const (
	// Limit is the time after which a wait ends with an error.
	Limit = 2 * time.Minute
	// pause is the least time between two checks of a state. The pause is also at least idle times as long as a check
	// takes. A check of all goroutines takes long, and checks without a pause would keep the state from being reached
	// on one processor. longest bounds the pause.
	pause   = 200 * time.Microsecond
	idle    = 9
	longest = 100 * time.Millisecond
)

// errLimit is the cause of the end of a wait that has lasted for Limit.
var errLimit = errors.New("did not come about")

// True returns when state returns true. It fails the test after Limit. It must be called by the goroutine of the
// test.
func True(t testing.TB, what string, state func() bool) {
	t.Helper()
	if err := Until(t.Context(), what, state); err != nil {
		t.Fatal(err)
	}
}

// Until returns nil when state returns true. It returns an error when ctx ends, or after Limit. It is for code
// outside the test's goroutine, such as the body of a rank.
func Until(ctx context.Context, what string, state func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, Limit, fmt.Errorf("%w in %v", errLimit, Limit))
	defer cancel()
	next := time.NewTimer(Limit)
	defer next.Stop()
	for begun := time.Now(); !state(); begun = time.Now() {
		next.Reset(min(max(pause, idle*time.Since(begun)), longest))
		select {
		case <-ctx.Done():
			return fmt.Errorf("await: waiting for %s: %w", what, context.Cause(ctx))
		case <-next.C:
		}
	}
	return nil
}

// Receive returns the next value of a channel. It fails the test if the channel is closed, and after Limit.
func Receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	value, ok := next(t, what, from)
	if !ok {
		t.Fatalf("await: waiting for %s: the channel was closed", what)
	}
	return value
}

// Closed returns when a channel is closed. It fails the test if a value arrives, and after Limit.
func Closed[T any](t testing.TB, what string, channel <-chan T) {
	t.Helper()
	if value, ok := next(t, what, channel); ok {
		t.Fatalf("await: waiting for %s: the channel had a value: %v", what, value)
	}
}

func next[T any](t testing.TB, what string, from <-chan T) (value T, ok bool) {
	t.Helper()
	limit := time.NewTimer(Limit)
	defer limit.Stop()
	select {
	case value, ok = <-from:
	case <-t.Context().Done():
		t.Fatalf("await: waiting for %s: %v", what, context.Cause(t.Context()))
	case <-limit.C:
		t.Fatalf("await: waiting for %s: %v in %v", what, errLimit, Limit)
	}
	return value, ok
}

// Parked returns when at least n goroutines are parked in function, or in a function that it calls. function is named
// as in a stack trace, in full or by its end: "window.(*Window[...]).Lock", "Lock". A goroutine that spins or runs is
// not parked; a goroutine in a system call is. Parked fails the test after Limit.
func Parked(t testing.TB, function string, n int) {
	t.Helper()
	True(t, fmt.Sprintf("%d goroutines to be parked in %s", n, function), func() bool { return parked(stacks(), function) >= n })
}

// UntilParked is like Parked, for code outside the test's goroutine.
func UntilParked(ctx context.Context, function string, n int) error {
	return Until(ctx, fmt.Sprintf("%d goroutines to be parked in %s", n, function), func() bool { return parked(stacks(), function) >= n })
}

// stacks returns the stacks of all goroutines.
func stacks() string {
	buffer := make([]byte, 1<<20)
	for {
		if n := runtime.Stack(buffer, true); n < len(buffer) {
			return string(buffer[:n])
		}
		buffer = make([]byte, 2*len(buffer))
	}
}

// parked counts the goroutines of a stack trace that are parked in function.
func parked(trace, function string) (n int) {
	for stack := range strings.SplitSeq(trace, "\n\n") {
		head, frames, _ := strings.Cut(stack, "\n")
		if strings.Contains(head, "[running") || strings.Contains(head, "[runnable") {
			continue
		}
		for frame := range strings.Lines(frames) {
			if calls(frame, function) {
				n++
				break
			}
		}
	}
	return n
}

// calls reports whether a line of a stack is a call of the function. Such a line ends with the call's arguments in
// parentheses. A line with the place of a function begins with a tab. A line with the creator of the goroutine is not
// a call.
func calls(frame, function string) bool {
	if strings.HasPrefix(frame, "\t") || strings.HasPrefix(frame, "created by ") {
		return false
	}
	end := strings.LastIndexByte(frame, '(')
	if end < 0 {
		return false
	}
	rest, ok := strings.CutSuffix(frame[:end], function)
	return ok && (rest == "" || strings.ContainsAny(rest[len(rest)-1:], "./"))
}

// Killed does not return. It is for a process that a test kills. It ends the process after twice Limit if the test
// does not.
func Killed() {
	time.Sleep(2 * Limit)
	fmt.Fprintf(os.Stderr, "await: this process was not killed in %v\n", 2*Limit)
	os.Exit(3)
}

package epoch

import (
	"fmt"
	"strings"

	"github.com/onesided/rma/internal/latch"
)

// Assert is a set of assertions about a synchronization. NoCheck is for LockAll, the others are for Fence.
type Assert uint8

const (
	// NoPrecede asserts that the epoch that Fence closes has no operations.
	NoPrecede Assert = 1 << iota
	// NoSucceed makes Fence open no epoch.
	NoSucceed
	// NoPut asserts that no rank puts or accumulates to this rank in the next epoch.
	NoPut
	// NoStore asserts that this rank has not stored to its part since its last Fence.
	NoStore
	// NoCheck asserts that no rank holds or requests an exclusive lock until the epoch that LockAll opens has ended.
	NoCheck

	fenceAsserts = NoPrecede | NoSucceed | NoPut | NoStore
)

func (a Assert) String() string {
	var names []string
	for i, name := range [...]string{"NoPrecede", "NoSucceed", "NoPut", "NoStore", "NoCheck"} {
		if a&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if rest := a &^ (fenceAsserts | NoCheck); rest != 0 {
		names = append(names, fmt.Sprintf("%#x", uint8(rest)))
	}
	return strings.Join(names, "|")
}

// BeginFence starts a Fence, or continues a suspended one, and returns its number. A continued Fence has the same
// number again. The Fence is complete when every rank has begun the Fence of this number. Operations are illegal from
// here on. EndFence, SuspendFence or FailFence follows.
//
// A Fence is continued with the assertions that it was begun with, because the other ranks rely on them.
func (s *State) BeginFence(assert Assert) (number uint32, err error) {
	switch {
	case assert&^fenceAsserts != 0:
		return 0, s.rejectFence(assert, ErrAssert, fmt.Sprintf("allowed are %v", fenceAsserts))
	case s.fence == closing:
		return 0, s.rejectFence(assert, ErrBusy, s.wayOut())
	case s.closed || s.exposed || s.mode != modeNone && s.mode != modeFence:
		return 0, s.rejectFence(assert, ErrEpochOpen, s.wayOut())
	case s.fence == suspended && assert != s.asserted:
		return 0, s.rejectFence(assert, ErrAssert, fmt.Sprintf("continue it as Fence(%v)", s.asserted))
	}
	s.fence = closing
	s.asserted = assert
	latch.Release(&s.all, accessClosed)
	return s.fences + 1, nil
}

func (s *State) rejectFence(assert Assert, class error, remedy string) error {
	call := "Fence"
	if assert != 0 {
		call = fmt.Sprintf("Fence(%v)", assert)
	}
	return s.reject(call, class, remedy)
}

// EndFence finishes a Fence that every rank has begun. assert is that of BeginFence.
func (s *State) EndFence(assert Assert) {
	s.fences++
	s.leaveFence(assert&NoSucceed == 0)
}

// SuspendFence suspends a Fence after other ranks have been notified of it. Only another Fence may follow, which
// continues it.
func (s *State) SuspendFence() { s.fence = suspended }

// FailFence gives up a Fence after a rank has failed. No epoch is open.
func (s *State) FailFence() { s.leaveFence(false) }

func (s *State) leaveFence(open bool) {
	s.fence = settled
	s.asserted = 0
	s.mode = modeNone
	if open {
		s.mode = modeFence
		s.openAll(accessActive)
	}
}

// LastFence returns the number of the last Fence that ended, or 0 before the first.
func (s *State) LastFence() uint32 { return s.fences }

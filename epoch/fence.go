package epoch

import "fmt"

// Assert is a set of promises about a synchronization.
type Assert uint8

const (
	// NoPrecede: no operations in the epoch that Fence closes.
	NoPrecede Assert = 1 << iota
	// NoSucceed: Fence opens no epoch.
	NoSucceed
	// NoPut: nobody puts or accumulates to this rank in the next epoch.
	NoPut
	// NoStore: this rank has not stored to its part since the last epoch.
	NoStore

	allAsserts = NoPrecede | NoSucceed | NoPut | NoStore
)

// BeginFence starts a Fence, or continues one that was suspended, and gives its
// number, the same when continued: the Fence is over when every rank has begun
// the one of this number. It is called with the mutex, and followed by EndFence,
// SuspendFence or FailFence.
func (s *State) BeginFence(assert Assert) (number uint32, err error) {
	switch {
	case s.closed || assert&^allAsserts != 0:
		if assert&^allAsserts != 0 && !s.closed {
			return 0, fmt.Errorf("epoch: Fence: %w: %#x, allowed are NoPrecede, NoSucceed, NoPut and NoStore", ErrAssert, uint8(assert))
		}
		return 0, s.refuse("Fence", ErrClosed, "")
	case s.fence == running:
		return 0, s.refuse("Fence", ErrBusy, "call it from one goroutine")
	case s.mode != modeNone && s.mode != modeFence:
		return 0, s.refuse("Fence", ErrEpochOpen, "close the access epoch first")
	case s.exposed:
		return 0, s.refuse("Fence", ErrEpochOpen, "Wait for the exposure first")
	}
	s.fence = running
	return s.fences + 1, nil
}

// EndFence finishes a Fence that every rank has begun.
func (s *State) EndFence(assert Assert) {
	s.fence = idle
	s.fences++
	if assert&NoSucceed != 0 {
		s.closeFence()
		return
	}
	if s.mode != modeFence {
		s.mode = modeFence
		s.setAll(accessActive)
	}
}

// SuspendFence leaves a Fence that may be begun again.
func (s *State) SuspendFence() { s.fence = suspended }

// FailFence gives a Fence up after a rank has failed. No epoch is open.
func (s *State) FailFence() {
	s.fence = idle
	s.closeFence()
}

func (s *State) closeFence() {
	if s.mode == modeFence {
		s.setAll(accessClosed)
	}
	s.mode = modeNone
}

// LastFence is the number of the last Fence that ended, 0 before the first.
func (s *State) LastFence() uint32 { return s.fences }

package epoch

import "github.com/onesided/rma/internal/latch"

// BeginStart starts an access epoch to group. Before EndStart, the post with number StartNumber(t) must have arrived
// from each target t of the group. EndStart or AbortStart follows.
func (s *State) BeginStart(group Group) error {
	switch {
	case !group.within(s.size):
		return s.reject("Start", ErrGroup, s.allowedRanks())
	case s.mode == modeStart && s.step.moving():
		return s.reject("Start", ErrBusy, s.wayOut())
	case s.closed || s.mode != modeNone || s.fence != settled:
		return s.reject("Start", ErrEpochOpen, s.wayOutOfAccess())
	}
	s.mode = modeStart
	s.step = opening
	s.started = group
	for _, t := range group.ranks {
		s.starts[t]++
	}
	return nil
}

// StartNumber returns the number of target's post that the current Start matches. The complete that ends the epoch has
// the same number.
func (s *State) StartNumber(target int) uint32 { return s.starts[target] }

// EndStart opens the epoch.
func (s *State) EndStart() {
	s.step = settled
	for _, t := range s.started.ranks {
		s.openOne(t, accessActive)
	}
}

// AbortStart restores the state before BeginStart. A post that has arrived matches the next Start that names its
// target.
func (s *State) AbortStart() {
	for _, t := range s.started.ranks {
		s.starts[t]--
	}
	s.leaveStart()
}

// BeginComplete ends the operations of a Start epoch, or continues a suspended Complete, and returns the group. Each
// target t that is not counted by Notified must be sent the complete with number StartNumber(t). EndComplete or
// SuspendComplete follows.
func (s *State) BeginComplete() (Group, error) {
	switch {
	case s.closed || s.mode != modeStart:
		return Group{}, s.reject("Complete", ErrNotStarted, "Complete ends what Start opened")
	case s.step.moving():
		return Group{}, s.reject("Complete", ErrBusy, s.wayOutOfAccess())
	}
	s.step = closing
	for _, t := range s.started.ranks {
		latch.Release(&s.access[t], accessClosed)
	}
	return s.started, nil
}

// Notified returns the number of ranks, in the caller's order, that the suspended Complete or UnlockAll has already
// notified. It is 0 if BeginComplete or BeginUnlockAll continues none.
func (s *State) Notified() int { return s.notified }

// SuspendComplete suspends a Complete that has notified the first n ranks of the group. Only another Complete may
// follow, which continues it.
func (s *State) SuspendComplete(n int) {
	s.step = suspended
	s.notified = n
}

// EndComplete ends the epoch, also if a target has failed and could not be notified.
func (s *State) EndComplete() { s.leaveStart() }

func (s *State) leaveStart() {
	s.mode = modeNone
	s.step = settled
	s.started = Group{}
	s.notified = 0
}

// BeginPost exposes this rank's part to group, or continues a suspended Post to the same group. Each origin o that is
// not counted by PostNotified must be sent the post with number PostNumber(o). A continued Post has the same numbers again.
// EndPost or SuspendPost follows.
func (s *State) BeginPost(group Group) error {
	switch {
	case !group.within(s.size):
		return s.reject("Post", ErrGroup, s.allowedRanks())
	case s.exposed && s.waiting.moving():
		return s.reject("Post", ErrBusy, s.wayOutOfExposure())
	case s.exposed && s.waiting == suspended && !s.closed && group.equal(s.posted):
		s.waiting = opening
		return nil
	case s.exposed:
		return s.reject("Post", ErrEpochOpen, s.wayOutOfExposure())
	case s.closed || s.mode == modeFence || s.fence != settled:
		return s.reject("Post", ErrEpochOpen, s.wayOutOfAccess())
	}
	s.exposed = true
	s.waiting = opening
	s.posted = group
	for _, o := range group.ranks {
		s.posts[o]++
	}
	return nil
}

// PostNotified returns the number of ranks, in the caller's order, that the suspended Post has already notified. It is 0 if
// BeginPost continues none.
func (s *State) PostNotified() int { return s.postNotified }

// SuspendedPost returns the group of a suspended Post, and the number of ranks that it has notified. If no Post is
// suspended, it returns false.
func (s *State) SuspendedPost() (group Group, notified int, ok bool) {
	return s.posted, s.postNotified, s.exposed && s.waiting == suspended
}

// SuspendPost suspends a Post that has notified the first n ranks of the group, which may have begun to operate. Only
// another Post to the same group may follow, which continues it: Wait and Test are rejected until then.
func (s *State) SuspendPost(n int) {
	s.waiting = suspended
	s.postNotified = n
}

// EndPost finishes a Post that has notified every origin that has not failed.
func (s *State) EndPost() {
	s.waiting = settled
	s.postNotified = 0
}

// PostNumber returns the number of the latest post to origin. The complete that Wait waits for has the same number.
func (s *State) PostNumber(origin int) uint32 { return s.posts[origin] }

// BeginWait starts or continues a Wait or a Test, whichever call names, and returns the exposure's group. Before
// EndWait, the complete with number PostNumber(o) must have arrived from each origin o. EndWait or SuspendWait follows.
func (s *State) BeginWait(call string) (Group, error) {
	switch {
	case s.closed || !s.exposed:
		return Group{}, s.reject(call, ErrNotPosted, call+" ends what Post opened")
	case s.waiting != settled:
		return Group{}, s.reject(call, ErrBusy, s.wayOutOfExposure())
	}
	s.waiting = closing
	return s.posted, nil
}

// EndWait ends the exposure. Every complete has arrived, or its origin has failed.
func (s *State) EndWait() {
	s.waiting = settled
	s.exposed = false
	s.posted = Group{}
}

// SuspendWait suspends a Wait or Test, which may be begun again. The exposure is unchanged, because a Wait sends
// nothing.
func (s *State) SuspendWait() { s.waiting = settled }

package epoch

import "github.com/onesided/rma/internal/latch"

// BeginStart starts an access epoch to group. What must have come before EndStart
// is, from each target t of the group, the post of number StartNumber(t). It is
// followed by EndStart or AbortStart.
func (s *State) BeginStart(group Group) error {
	switch {
	case !group.within(s.size):
		return s.refuse("Start", ErrGroup, s.allowedRanks())
	case s.mode == modeStart && s.step.moving():
		return s.refuse("Start", ErrBusy, s.wayOut())
	case s.closed || s.mode != modeNone || s.fence != settled:
		return s.refuse("Start", ErrEpochOpen, s.wayOutOfAccess())
	}
	s.mode = modeStart
	s.step = opening
	s.started = group
	for _, t := range group.ranks {
		s.starts[t]++
	}
	return nil
}

// StartNumber is the number of the post of target that the Start in progress or
// open matches, and of the complete that ends it.
func (s *State) StartNumber(target int) uint32 { return s.starts[target] }

// EndStart opens the epoch.
func (s *State) EndStart() {
	s.step = settled
	for _, t := range s.started.ranks {
		s.openOne(t, accessActive)
	}
}

// AbortStart goes back to before BeginStart: a post that has come is matched by the
// next Start that names its target.
func (s *State) AbortStart() {
	for _, t := range s.started.ranks {
		s.starts[t]--
	}
	s.leaveStart()
}

// BeginComplete ends the operations of a Start epoch, or continues a Complete that was
// suspended, and gives the group: each target t, from the Told-th on, is to be told
// the complete of number StartNumber(t). It is followed by EndComplete or
// SuspendComplete.
func (s *State) BeginComplete() (Group, error) {
	switch {
	case s.closed || s.mode != modeStart:
		return Group{}, s.refuse("Complete", ErrNotStarted, "Complete ends what Start opened")
	case s.step.moving():
		return Group{}, s.refuse("Complete", ErrBusy, s.wayOutOfAccess())
	}
	s.step = closing
	for _, t := range s.started.ranks {
		latch.Release(&s.access[t], accessClosed)
	}
	return s.started, nil
}

// Told is how many ranks of the group, in the order of the caller, have been told by the Complete
// that BeginComplete continues, 0 if it continues none.
func (s *State) Told() int { return s.told }

// SuspendComplete leaves a Complete that has told the first told ranks of the group.
// Only a Complete can follow in its place, which continues it.
func (s *State) SuspendComplete(told int) {
	s.step = suspended
	s.told = told
}

// EndComplete ends the epoch, also where a target could not be told because it has
// failed.
func (s *State) EndComplete() { s.leaveStart() }

func (s *State) leaveStart() {
	s.mode = modeNone
	s.step = settled
	s.started = Group{}
	s.told = 0
}

// BeginPost exposes this rank's part to group: each origin o is to be told the post of
// number PostNumber(o). It is followed by EndPost.
func (s *State) BeginPost(group Group) error {
	switch {
	case !group.within(s.size):
		return s.refuse("Post", ErrGroup, s.allowedRanks())
	case s.exposed && s.waiting.moving():
		return s.refuse("Post", ErrBusy, s.wayOutOfExposure())
	case s.exposed:
		return s.refuse("Post", ErrEpochOpen, s.wayOutOfExposure())
	case s.closed || s.mode == modeFence || s.fence != settled:
		return s.refuse("Post", ErrEpochOpen, s.wayOutOfAccess())
	}
	s.exposed = true
	s.waiting = opening
	s.posted = group
	for _, o := range group.ranks {
		s.posts[o]++
	}
	return nil
}

// EndPost finishes a Post that has told every origin which has not failed.
func (s *State) EndPost() { s.waiting = settled }

// PostNumber is the number of the latest post to origin, and of the complete that
// Wait awaits from it.
func (s *State) PostNumber(origin int) uint32 { return s.posts[origin] }

// BeginWait starts, or continues, a Wait or a Test, whichever call names, and gives
// the exposure's group: what must have come before EndWait is, from each origin o,
// the complete of number PostNumber(o). It is followed by EndWait or SuspendWait.
func (s *State) BeginWait(call string) (Group, error) {
	switch {
	case s.closed || !s.exposed:
		return Group{}, s.refuse(call, ErrNotPosted, call+" ends what Post opened")
	case s.waiting.moving():
		return Group{}, s.refuse(call, ErrBusy, s.wayOutOfExposure())
	}
	s.waiting = closing
	return s.posted, nil
}

// EndWait ends the exposure: all has come, or will never come from a rank that has
// failed.
func (s *State) EndWait() {
	s.waiting = settled
	s.exposed = false
	s.posted = Group{}
}

// SuspendWait leaves a Wait or Test that may be begun again. It has told nobody
// anything, so the exposure is as it was.
func (s *State) SuspendWait() { s.waiting = settled }

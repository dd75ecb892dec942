package epoch

// BeginStart starts an access epoch to group. What must have come before EndStart
// is, from each target t of the group, the post of number StartNumber(t).
func (s *State) BeginStart(group Group) error {
	switch {
	case s.closed:
		return s.refuse("Start", ErrClosed, "")
	case !group.within(s.size):
		return s.refuse("Start", ErrGroup, "make the group for this window")
	case s.mode == modeStarting:
		return s.refuse("Start", ErrBusy, "call it from one goroutine")
	case s.mode != modeNone || s.fence != idle:
		return s.refuse("Start", ErrEpochOpen, s.howToClose())
	}
	s.mode = modeStarting
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
	s.mode = modeStarted
	s.setGroup(s.started, accessActive)
}

// AbortStart goes back to before BeginStart.
func (s *State) AbortStart() {
	for _, t := range s.started.ranks {
		s.starts[t]--
	}
	s.started = Group{}
	s.mode = modeNone
}

// BeginComplete ends the Start epoch's operations and gives its group: each target
// t is told the complete of number StartNumber(t).
func (s *State) BeginComplete() (Group, error) {
	switch {
	case s.closed:
		return Group{}, s.refuse("Complete", ErrClosed, "")
	case s.mode == modeCompleting:
		return Group{}, s.refuse("Complete", ErrBusy, "call it from one goroutine")
	case s.mode != modeStarted:
		return Group{}, s.refuse("Complete", ErrNotStarted, "Complete ends what Start opened")
	}
	s.mode = modeCompleting
	s.setGroup(s.started, accessClosed)
	return s.started, nil
}

// EndComplete ends the epoch, also where a target could not be told because it has
// failed.
func (s *State) EndComplete() {
	s.mode = modeNone
	s.started = Group{}
}

// Post exposes this rank's part to group: each origin o is told the post of number
// PostNumber(o). It does not block.
func (s *State) Post(group Group) error {
	switch {
	case s.closed:
		return s.refuse("Post", ErrClosed, "")
	case !group.within(s.size):
		return s.refuse("Post", ErrGroup, "make the group for this window")
	case s.exposed:
		return s.refuse("Post", ErrEpochOpen, "Wait for the exposure first")
	case s.mode == modeFence || s.fence != idle:
		return s.refuse("Post", ErrEpochOpen, s.howToClose())
	}
	s.exposed = true
	s.posted = group
	for _, o := range group.ranks {
		s.posts[o]++
	}
	return nil
}

// PostNumber is the number of the latest post to origin, and of the complete that
// Wait awaits from it.
func (s *State) PostNumber(origin int) uint32 { return s.posts[origin] }

// BeginWait starts, or continues, a Wait or a Test and gives the exposure's group:
// what must have come before EndWait is, from each origin o, the complete of number
// PostNumber(o). It is followed by EndWait or SuspendWait.
func (s *State) BeginWait(call string) (Group, error) {
	switch {
	case s.closed:
		return Group{}, s.refuse(call, ErrClosed, "")
	case !s.exposed:
		return Group{}, s.refuse(call, ErrNotPosted, call+" ends what Post opened")
	case s.waiting == running:
		return Group{}, s.refuse(call, ErrBusy, "call it from one goroutine")
	}
	s.waiting = running
	return s.posted, nil
}

// EndWait ends the exposure: all has come, or will never come from a rank that has
// failed.
func (s *State) EndWait() {
	s.waiting = idle
	s.exposed = false
	s.posted = Group{}
}

// SuspendWait leaves a Wait or Test that may be begun again.
func (s *State) SuspendWait() { s.waiting = suspended }

func (s *State) howToClose() string {
	switch {
	case s.fence != idle:
		return "let Fence return first"
	case s.mode == modeFence:
		return "close it by Fence(NoSucceed)"
	case s.mode == modeLocks:
		return "close it by Unlock"
	case s.mode == modeLockAll:
		return "close it by UnlockAll"
	}
	return "close it by Complete"
}

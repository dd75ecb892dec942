package epoch

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/onesided/rma/internal/errtext"
)

// nothingOpen is what Describe returns if no epoch is open.
const nothingOpen = "no epoch is open"

// Describe returns a text that lists the open epochs and the calls in progress.
func (s *State) Describe() string {
	if s.closed {
		return "nothing is open"
	}
	var open []string
	if text := s.describeAccess(); text != "" {
		open = append(open, text)
	}
	switch s.fence {
	case closing:
		open = append(open, "Fence is in progress")
	case suspended:
		open = append(open, "a Fence was interrupted")
	}
	if s.exposed {
		open = append(open, fmt.Sprintf([...]string{
			settled:   "an exposure to ranks %v is posted",
			opening:   "Post to ranks %v is in progress",
			closing:   "an exposure to ranks %v is posted and waited for",
			suspended: "a Post to ranks %v was interrupted",
		}[s.waiting], s.posted))
	}
	if len(open) == 0 {
		return nothingOpen
	}
	return strings.Join(open, ", ")
}

// describeAccess describes the open access epoch. It returns "" if none is open.
func (s *State) describeAccess() string {
	switch s.mode {
	case modeFence:
		if s.fence == settled {
			return "a fence epoch is open"
		}
	case modeStart:
		return fmt.Sprintf([...]string{
			settled:   "a Start epoch to ranks %v is open",
			opening:   "Start to ranks %v is in progress",
			closing:   "Complete to ranks %v is in progress",
			suspended: "a Complete to ranks %v was interrupted",
		}[s.step], s.started)
	case modeLocks:
		var list listing
		for t, l := range s.locks {
			if l.kind != 0 {
				list.add(fmt.Sprintf([...]string{
					settled:   "rank %d is locked (%v)",
					opening:   "Lock of rank %d (%v) is in progress",
					closing:   "Unlock of rank %d (%v) is in progress",
					suspended: "an Unlock of rank %d (%v) was interrupted",
				}[l.step], t, l.kind))
			}
		}
		return list.join(", ")
	case modeLockAll:
		return [...]string{
			settled:   "all ranks are locked by LockAll",
			opening:   "LockAll is in progress",
			closing:   "UnlockAll is in progress",
			suspended: "an UnlockAll was interrupted",
		}[s.step]
	}
	return ""
}

// An Opening is a call that opened an epoch, and its target, or -1 if the call has no single target.
type Opening struct {
	Call   string
	Target int
}

// Opened returns an iterator over the calls that opened the epochs that are open now.
func (s *State) Opened() iter.Seq[Opening] {
	return func(yield func(Opening) bool) {
		access := map[mode]string{modeFence: "Fence", modeStart: "Start", modeLockAll: "LockAll"}[s.mode]
		if access != "" && s.step != opening && !yield(Opening{access, -1}) {
			return
		}
		for t, l := range s.locks {
			if l.kind != 0 && l.step != opening && !yield(Opening{"Lock", t}) {
				return
			}
		}
		if s.exposed {
			yield(Opening{"Post", -1})
		}
	}
}

// wayOut says how to close one of the open epochs.
func (s *State) wayOut() string {
	if s.exposed {
		return s.wayOutOfExposure()
	}
	return s.wayOutOfAccess()
}

func (s *State) wayOutOfExposure() string {
	return [...]string{
		settled:   "end the exposure by Wait or Test",
		opening:   "let Post return first",
		closing:   "let Wait or Test return first",
		suspended: "call Post again with the same group, which continues it",
	}[s.waiting]
}

func (s *State) wayOutOfAccess() string {
	it := "it"
	if s.exposed {
		it = "the access epoch"
	}
	switch {
	case s.fence == closing:
		return "let Fence return first"
	case s.fence == suspended:
		return "call Fence again, which continues it"
	case s.mode == modeFence:
		return "close " + it + " by Fence(NoSucceed)"
	case s.mode == modeStart:
		return [...]string{
			settled:   "close " + it + " by Complete",
			opening:   "let Start return first",
			closing:   "let Complete return first",
			suspended: "call Complete again, which continues it",
		}[s.step]
	case s.mode == modeLocks && !slices.ContainsFunc(s.locks, func(l lock) bool { return l.kind != 0 && !l.step.moving() }):
		return "let Lock or Unlock return first"
	case s.mode == modeLocks:
		return "close " + it + " by Unlock"
	}
	return [...]string{
		settled:   "close " + it + " by UnlockAll",
		opening:   "let LockAll return first",
		closing:   "let UnlockAll return first",
		suspended: "call UnlockAll again, which continues it",
	}[s.step]
}

// wayToLock says how a call gets the lock that it needs: by lock now, or after the open epoch is closed.
func (s *State) wayToLock(lock string) string {
	if s.fence != settled || s.mode == modeFence || s.mode == modeStart {
		return s.wayOutOfAccess() + ", then " + lock
	}
	return lock
}

// wayToUnlock says what call, which is Unlock or UnlockAll, is for. If the open locks need the other call, it names
// that.
func (s *State) wayToUnlock(call string) string {
	switch {
	case s.mode == modeLocks && call == "UnlockAll":
		return "Unlock ends what Lock opened"
	case s.mode == modeLockAll && call == "Unlock":
		return "UnlockAll ends what LockAll opened"
	case call == "UnlockAll":
		return "UnlockAll ends what LockAll opened, and nothing else"
	}
	return "Unlock ends what Lock of the same rank opened"
}

// allowedRanks says which ranks a group may have.
func (s *State) allowedRanks() string {
	return errtext.Allowed(s.size-1) + ", make the group by this window's Group"
}

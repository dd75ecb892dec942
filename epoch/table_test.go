package epoch

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// states of a rank in a job of two, and how it comes there.
var states = []struct {
	name string
	come func(s *State)
}{
	{"nothing", func(*State) {}},
	{"fence", func(s *State) { _, _ = s.BeginFence(0); s.EndFence(0) }},
	{"fence left", func(s *State) { _, _ = s.BeginFence(0); s.SuspendFence() }},
	{"start 1", func(s *State) { _ = s.BeginStart(Group{[]int{1}}); s.EndStart() }},
	{"post", func(s *State) { _ = s.BeginPost(Group{[]int{1}}); s.EndPost() }},
	{"posting", func(s *State) { _ = s.BeginPost(Group{[]int{1}}) }},
	{"post+start", func(s *State) {
		_ = s.BeginPost(Group{[]int{1}})
		s.EndPost()
		_ = s.BeginStart(Group{[]int{1}})
		s.EndStart()
	}},
	{"lock 1", func(s *State) { _ = s.BeginLock(Exclusive, 1); s.EndLock(1) }},
	{"locking 1", func(s *State) { _ = s.BeginLock(Exclusive, 1) }},
	{"lock all", func(s *State) { _ = s.BeginLockAll(); s.EndLockAll() }},
	{"complete left", func(s *State) {
		_ = s.BeginStart(Group{[]int{1}})
		s.EndStart()
		_, _ = s.BeginComplete()
		s.SuspendComplete(0)
	}},
	{"post left", func(s *State) { _ = s.BeginPost(Group{[]int{1}}); s.SuspendPost(0) }},
	{"unlock 1 left", func(s *State) {
		_ = s.BeginLock(Exclusive, 1)
		s.EndLock(1)
		_, _ = s.BeginUnlock(1)
		s.SuspendUnlock(1)
	}},
	{"unlockall left", func(s *State) {
		_ = s.BeginLockAll()
		s.EndLockAll()
		_ = s.BeginUnlockAll()
		s.SuspendUnlockAll(1)
	}},
	{"closed", func(s *State) { _ = s.Close() }},
	{"abandoned", func(s *State) { _ = s.BeginLock(Exclusive, 1); s.EndLock(1); s.Abandon() }},
}

// calls that a program makes in each.
var calls = []struct {
	name string
	call func(s *State) error
}{
	{"Put to 0", func(s *State) error { return operation(s, 0) }},
	{"Put to 1", func(s *State) error { return operation(s, 1) }},
	{"Fence", func(s *State) error { _, err := s.BeginFence(0); return err }},
	{"Start", func(s *State) error { return s.BeginStart(Group{[]int{0, 1}}) }},
	{"Complete", func(s *State) error { _, err := s.BeginComplete(); return err }},
	{"Post to 0", func(s *State) error { return s.BeginPost(Group{[]int{0}}) }},
	{"Post to 1", func(s *State) error { return s.BeginPost(Group{[]int{1}}) }},
	{"Wait", func(s *State) error { _, err := s.BeginWait("Wait"); return err }},
	{"Lock 0", func(s *State) error { return s.BeginLock(Shared, 0) }},
	{"Lock 1", func(s *State) error { return s.BeginLock(Shared, 1) }},
	{"Unlock 1", func(s *State) error { _, err := s.BeginUnlock(1); return err }},
	{"LockAll", (*State).BeginLockAll},
	{"UnlockAll", (*State).BeginUnlockAll},
	{"Flush 1", func(s *State) error { return s.CheckFlush("Flush", 1) }},
	{"FlushAll", func(s *State) error { return s.CheckFlushAll("FlushAll") }},
	{"Close", (*State).Close},
}

func operation(s *State, target int) error {
	if s.Open(target) {
		return nil
	}
	return s.Reject("Put", target)
}

// short names of the errors in the table.
var short = []struct {
	err  error
	name string
}{
	{ErrClosed, "closed"}, {ErrNoEpoch, "no epoch"}, {ErrEpochOpen, "open"}, {ErrBusy, "busy"}, {ErrNotStarted, "not started"},
	{ErrNotPosted, "not posted"}, {ErrNotLocked, "not locked"}, {nil, "."},
}

func outcome(err error) string {
	for _, s := range short {
		if errors.Is(err, s.err) {
			return s.name
		}
	}
	return err.Error()
}

// semantics is what each call gives in each state: a dot if it is legal.
const semantics = `
            nothing         fence           fence left      start 1         post            posting         post+start      lock 1          locking 1       lock all        complete left   post left       unlock 1 left   unlockall left  closed          abandoned
Put to 0    no epoch        .               no epoch        no epoch        no epoch        no epoch        no epoch        no epoch        no epoch        .               no epoch        no epoch        no epoch        no epoch        closed          closed
Put to 1    no epoch        .               no epoch        .               no epoch        no epoch        .               .               no epoch        .               no epoch        no epoch        no epoch        no epoch        closed          closed
Fence       .               .               .               open            open            open            open            open            open            open            open            open            open            open            closed          closed
Start       .               open            open            open            .               .               open            open            open            open            open            .               open            open            closed          closed
Complete    not started     not started     not started     .               not started     not started     .               not started     not started     not started     .               not started     not started     not started     closed          closed
Post to 0   .               open            open            .               open            busy            open            .               .               .               .               open            .               .               closed          closed
Post to 1   .               open            open            .               open            busy            open            .               .               .               .               .               .               .               closed          closed
Wait        not posted      not posted      not posted      not posted      .               busy            .               not posted      not posted      not posted      not posted      busy            not posted      not posted      closed          closed
Lock 0      .               open            open            open            .               .               open            .               .               open            open            .               .               open            closed          closed
Lock 1      .               open            open            open            .               .               open            open            busy            open            open            .               open            open            closed          closed
Unlock 1    not locked      not locked      not locked      not locked      not locked      not locked      not locked      .               busy            not locked      not locked      not locked      .               not locked      closed          closed
LockAll     .               open            open            open            .               .               open            open            open            open            open            .               open            open            closed          closed
UnlockAll   not locked      not locked      not locked      not locked      not locked      not locked      not locked      not locked      not locked      .               not locked      not locked      not locked      .               closed          closed
Flush 1     not locked      not locked      not locked      not locked      not locked      not locked      not locked      .               busy            .               not locked      not locked      busy            busy            closed          closed
FlushAll    not locked      not locked      not locked      not locked      not locked      not locked      not locked      .               busy            .               not locked      not locked      busy            busy            closed          closed
Close       .               open            open            open            open            open            open            open            open            open            open            open            open            open            closed          closed
`

func TestTable(t *testing.T) {
	var got strings.Builder
	row := func(first string, cells []string) {
		line := fmt.Sprintf("%-12s", first)
		for _, cell := range cells {
			line += fmt.Sprintf("%-16s", cell)
		}
		fmt.Fprintln(&got, strings.TrimRight(line, " "))
	}
	fmt.Fprintln(&got)
	var names []string
	for _, state := range states {
		names = append(names, state.name)
	}
	row("", names)
	for _, c := range calls {
		var cells []string
		for _, state := range states {
			s := New(0, 2)
			state.come(s)
			before := s.Describe()
			err := c.call(s)
			cells = append(cells, outcome(err))
			if err != nil {
				require.Equal(t, before, s.Describe(), "%s, rejected in state %s, changed it", c.name, state.name)
			}
		}
		row(c.name, cells)
	}
	require.Equal(t, semantics, got.String())
}

package epoch

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGroups(t *testing.T) {
	g, err := NewGroup(5, 4, 0, 2)
	require.NoError(t, err)
	require.Equal(t, []int{0, 2, 4}, g.Ranks())
	require.Equal(t, 3, g.Len())
	require.Equal(t, 2, g.Rank(1))
	require.True(t, g.Contains(4))
	require.False(t, g.Contains(3))
	require.Equal(t, "[0 2 4]", g.String())
	for rank, order := range [][]int{{2, 4, 0}, {2, 4, 0}, {4, 0, 2}, {4, 0, 2}, {0, 2, 4}} {
		require.Equal(t, order, []int{g.After(rank, 0), g.After(rank, 1), g.After(rank, 2)}, "behind %d", rank)
	}
	g.Ranks()[0] = 9
	require.Equal(t, 0, g.Rank(0))

	empty, err := NewGroup(5)
	require.NoError(t, err)
	require.Zero(t, empty.Len())
	require.Equal(t, Group{}.String(), empty.String())

	for _, test := range []struct {
		ranks []int
		says  string
	}{
		{[]int{5}, "rank 5, allowed are 0 to 4"},
		{[]int{0, -1}, "rank -1, allowed are 0 to 4"},
		{[]int{1, 3, 1}, "rank 1 twice"},
	} {
		_, err := NewGroup(5, test.ranks...)
		require.ErrorIs(t, err, ErrGroup)
		require.ErrorContains(t, err, test.says)
	}
	many, err := NewGroup(20, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	require.NoError(t, err)
	require.Equal(t, "[0 1 2 3 4 5 6 7 and 4 more]", many.String())
}

func TestNames(t *testing.T) {
	require.Equal(t, "NoPrecede|NoSucceed", (NoPrecede | NoSucceed).String())
	require.Equal(t, "NoPut|0x40", (NoPut | 0x40).String())
	require.Equal(t, "", Assert(0).String())
	require.Equal(t, []string{"shared", "exclusive", "LockKind(3)"}, []string{Shared.String(), Exclusive.String(), LockKind(3).String()})
}

func TestReached(t *testing.T) {
	for _, test := range []struct {
		count, number uint32
		want          bool
	}{{0, 0, true}, {1, 0, true}, {0, 1, false}, {7, 8, false}, {2, 0xffffffff, true}, {0xffffffff, 2, false}, {1 << 31, 1, true}} {
		require.Equal(t, test.want, Reached(test.count, test.number), "%d, %d", test.count, test.number)
	}
}

// What a user reads: what was called, what is open, what is allowed.
func TestMessages(t *testing.T) {
	s := New(3, 8)
	group := func(ranks ...int) Group {
		g, err := NewGroup(8, ranks...)
		require.NoError(t, err)
		return g
	}
	require.EqualError(t, s.Reject("Put", 5), "epoch: rank 3: Put on rank 5: no epoch is open; open one by Fence, by Start with a group that has the target, or by Lock or LockAll")
	require.NoError(t, s.BeginLock(Exclusive, 2))
	s.EndLock(2)
	require.EqualError(t, s.BeginStart(group(1)), "epoch: rank 3: Start: rank 2 is locked (exclusive); close it by Unlock")
	require.EqualError(t, s.Reject("Get", 4), "epoch: rank 3: Get on rank 4: no access epoch to the target, the locks are of other ranks: rank 2 is locked (exclusive); Lock the target too")
	require.ErrorIs(t, s.Reject("Get", 4), ErrOtherLocks)
	require.NoError(t, s.BeginPost(group(0, 1)))
	s.EndPost()
	require.EqualError(t, s.Close(), "epoch: rank 3: Close: rank 2 is locked (exclusive), an exposure to ranks [0 1] is posted; end the exposure by Wait or Test")
	_, err := s.BeginFence(0)
	require.EqualError(t, err, "epoch: rank 3: Fence: rank 2 is locked (exclusive), an exposure to ranks [0 1] is posted; end the exposure by Wait or Test")
	_, err = s.BeginUnlock(2)
	require.NoError(t, err)
	s.EndUnlock(2)
	require.NoError(t, s.BeginStart(group(1, 7)))
	s.EndStart()
	require.EqualError(t, s.Reject("Put", 2), "epoch: rank 3: Put on rank 2: no access epoch to the target, the group of Start does not have it: a Start epoch to ranks [1 7] is open, an exposure to ranks [0 1] is posted; name the target in the group of Start")
	require.ErrorIs(t, s.Reject("Put", 2), ErrOtherRanks)
}

// What is allowed is what continues a call that was left, or to wait for one in progress.
func TestRemedies(t *testing.T) {
	group, err := NewGroup(4, 1, 2)
	require.NoError(t, err)
	for _, test := range []struct {
		state  func(s *State)
		remedy string
	}{
		{func(s *State) { _, _ = s.BeginFence(0); s.SuspendFence() }, "call Fence again, which continues it"},
		{func(s *State) {
			_ = s.BeginStart(group)
			s.EndStart()
			_, _ = s.BeginComplete()
			s.SuspendComplete(1)
		}, "call Complete again, which continues it"},
		{func(s *State) {
			_ = s.BeginLock(Shared, 1)
			s.EndLock(1)
			_, _ = s.BeginUnlock(1)
			s.SuspendUnlock(1)
		}, "call Unlock again, which continues it"},
		{leaveUnlockAll, "call UnlockAll again, which continues it"},
		{func(s *State) { _ = s.BeginLock(Shared, 1) }, "order operations after the call that opens their epoch and before the one that closes it"},
	} {
		s := New(3, 4)
		test.state(s)
		require.False(t, s.Open(1))
		require.ErrorIs(t, s.Reject("Put", 1), ErrChanging)
		require.ErrorContains(t, s.Reject("Put", 1), "; "+test.remedy)
	}

	s := New(3, 4)
	require.NoError(t, s.BeginLock(Shared, 1))
	require.ErrorContains(t, s.BeginLockAll(), "; let Lock or Unlock return first")
	require.NoError(t, s.BeginLock(Shared, 2))
	s.EndLock(2)
	require.ErrorContains(t, s.BeginLockAll(), "; close it by Unlock")
}

// Open is asked by any goroutine while others call what changes it under a mutex.
func TestConcurrency(t *testing.T) {
	s := New(0, 4)
	var mu sync.Mutex
	var together sync.WaitGroup
	for target := range 4 {
		together.Go(func() {
			for range 2000 {
				mu.Lock()
				err := s.BeginLock(Shared, target)
				mu.Unlock()
				if err != nil {
					t.Error(err)
					return
				}
				if s.Open(target) {
					t.Error("open before the lock is there")
				}
				mu.Lock()
				s.EndLock(target)
				mu.Unlock()
				if !s.Open(target) || !s.Passive(target) {
					t.Error("closed though it is locked")
				}
				mu.Lock()
				_, err = s.BeginUnlock(target)
				s.EndUnlock(target)
				mu.Unlock()
				if err != nil || s.Open(target) {
					t.Errorf("open after Unlock, or %v", err)
				}
			}
		})
	}
	together.Wait()
}

func TestNothingIsAllocated(t *testing.T) {
	s := New(0, 4)
	group, err := NewGroup(4, 1, 2)
	require.NoError(t, err)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, err := s.BeginFence(0)
		must(err)
		s.EndFence(0)
		_, err = s.BeginFence(NoSucceed)
		must(err)
		s.EndFence(NoSucceed)
		must(s.BeginPost(group))
		s.EndPost()
		must(s.BeginStart(group))
		s.EndStart()
		_, err = s.BeginComplete()
		must(err)
		s.EndComplete()
		_, err = s.BeginWait("Wait")
		must(err)
		s.EndWait()
		must(s.BeginLock(Shared, 3))
		s.EndLock(3)
		must(s.CheckFlush("Flush", 3))
		_, err = s.BeginUnlock(3)
		must(err)
		s.EndUnlock(3)
		must(s.BeginLockAll())
		s.EndLockAll()
		must(s.CheckFlushAll("FlushAll"))
		must(s.BeginUnlockAll())
		s.EndUnlockAll()
	}))
}

func BenchmarkOpen(b *testing.B) {
	s := New(0, 64)
	if err := s.BeginLock(Shared, 7); err != nil {
		b.Fatal(err)
	}
	s.EndLock(7)
	open := 0
	for b.Loop() {
		if s.Open(7) {
			open++
		}
	}
}

// The error of a flush after an Unlock that was interrupted speaks of no other goroutine.
func TestBusyAfterSuspendedUnlock(t *testing.T) {
	s := New(0, 2)
	require.NoError(t, s.BeginLock(Shared, 1))
	s.EndLock(1)
	_, err := s.BeginUnlock(1)
	require.NoError(t, err)
	s.SuspendUnlock(1)
	require.EqualError(t, s.CheckFlush("Flush", 1), "epoch: rank 0: Flush of rank 1: the epoch is being opened or closed: "+
		"an Unlock of rank 1 (shared) was interrupted; call Unlock again, which continues it")
}

func leaveUnlockAll(s *State) {
	_ = s.BeginLockAll()
	s.EndLockAll()
	_ = s.BeginUnlockAll()
	s.SuspendUnlockAll(2)
}

// After an UnlockAll that was interrupted, the errors of other calls speak of no other goroutine, and another one goes on.
func TestSuspendedUnlockAll(t *testing.T) {
	s := New(0, 4)
	leaveUnlockAll(s)
	const left = "an UnlockAll was interrupted; call UnlockAll again, which continues it"
	require.EqualError(t, s.CheckFlush("Flush", 1), "epoch: rank 0: Flush of rank 1: the epoch is being opened or closed: "+left)
	require.EqualError(t, s.CheckFlushAll("FlushAll"), "epoch: rank 0: FlushAll: the epoch is being opened or closed: "+left)
	require.EqualError(t, s.BeginLock(Shared, 1), "epoch: rank 0: Lock(shared) of rank 1: "+left)
	require.EqualError(t, s.Close(), "epoch: rank 0: Close: "+left)
	require.NoError(t, s.BeginUnlockAll())
	require.Equal(t, 2, s.Notified())
	s.EndUnlockAll()
	require.NoError(t, s.BeginLockAll())
	s.EndLockAll()
	require.NoError(t, s.BeginUnlockAll())
	require.Zero(t, s.Notified())
}

// After a Post that was interrupted, another one to the same group goes on with the same numbers. A Start epoch, which can
// be open beside it, remembers by itself whom it has notified.
func TestSuspendedPost(t *testing.T) {
	s := New(0, 4)
	group, err := NewGroup(4, 1, 2)
	require.NoError(t, err)
	other, err := NewGroup(4, 1)
	require.NoError(t, err)
	require.NoError(t, s.BeginPost(group))
	_, _, suspended := s.SuspendedPost()
	require.False(t, suspended)
	s.SuspendPost(1)
	posted, notified, suspended := s.SuspendedPost()
	require.True(t, suspended)
	require.Equal(t, group, posted)
	require.Equal(t, 1, notified)
	const left = "a Post to ranks [1 2] was interrupted; call Post again with the same group, which continues it"
	require.EqualError(t, s.BeginPost(other), "epoch: rank 0: Post: "+left)
	_, err = s.BeginWait("Wait")
	require.EqualError(t, err, "epoch: rank 0: Wait: the epoch is being opened or closed: "+left)
	require.EqualError(t, s.Close(), "epoch: rank 0: Close: "+left)
	require.NoError(t, s.BeginStart(group))
	s.EndStart()
	_, err = s.BeginComplete()
	require.NoError(t, err)
	s.SuspendComplete(2)
	require.Equal(t, []int{2, 1}, []int{s.Notified(), s.PostNotified()})
	require.NoError(t, s.BeginPost(group))
	require.Equal(t, 1, s.PostNotified())
	require.EqualValues(t, 1, s.PostNumber(2))
	s.EndPost()
	require.Equal(t, []int{2, 0}, []int{s.Notified(), s.PostNotified()})
	_, err = s.BeginWait("Wait")
	require.NoError(t, err)
	s.EndWait()
	require.NoError(t, s.BeginPost(other))
	require.EqualValues(t, 2, s.PostNumber(1))
}

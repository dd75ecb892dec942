package channel

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// A Set is the polling set of a rank (3.3, 4.6): the channels whose rings it polls, the busiest ones, as many as the
// budget allows. It decides only by the messages that CountMessage counts. It is for one goroutine at a time, together
// with the receiver halves of its channels.
type Set struct {
	// looks are at the places where the members' next messages begin, side by side. Each channel changes its own.
	looks    []look
	members  []*Channel
	capacity int
	// touched are the channels with messages in this period. messages counts these messages.
	touched     []*Channel
	messages    int
	period      uint32
	join, leave []*Channel
}

// traffic is what a set knows of a channel. score counts messages, times scoreOne. Each period weighs half as much as
// the next. period is the one for which score holds. position is the index in the set + 1.
type traffic struct {
	recent, score, period uint32
	position              int
}

const (
	// DefaultBudget polls 16 rings of 9 ns each, as in the paper (6.4). There, programs of up to 1024 processes send
	// from at most 11 to one (table 1).
	DefaultBudget = 150 * time.Nanosecond
	// periodMessages is the number of messages of a period.
	periodMessages = 64
	scoreOne       = 1 << 8
	// A channel joins a set with a free place at joinScore. It takes the place of a member whose score is below its own
	// divided by betterBy. A member below leaveScore leaves.
	joinScore  = 2 * scoreOne
	betterBy   = 2
	leaveScore = scoreOne / 8
)

// NewSet returns a set of as many channels as can be polled within a budget if polling one takes perRing.
func NewSet(budget, perRing time.Duration) *Set {
	return &Set{capacity: min(int(max(budget, 0)/max(perRing, 1)), maxMembers)}
}

// maxMembers bounds a set if polling costs nothing.
const maxMembers = 1 << 10

// Capacity returns the maximum number of members.
func (s *Set) Capacity() int { return s.capacity }

// Len returns the number of rings that are polled: those of the members, and those of channels that have left while
// their peers may still write there.
func (s *Set) Len() int { return len(s.looks) }

// Next returns the first index, from an index on, whose ring or pipe has something at its head, or -1 if there is none.
func (s *Set) Next(from int) int {
	for i := from; i < len(s.looks); i++ {
		if s.looks[i].finds() {
			return i
		}
	}
	return -1
}

// At returns the channel at an index.
func (s *Set) At(i int) *Channel { return s.members[i] }

// CountMessage counts a message of a channel, by ring or eager, and reports whether Review has to be called.
func (s *Set) CountMessage(c *Channel) (due bool) {
	if c.traffic.recent++; c.traffic.recent == 1 {
		s.touched = append(s.touched, c)
	}
	s.messages++
	return s.messages >= periodMessages
}

// Review ends a period. join are the channels that should become members, the busiest first. The caller adds each by
// Add, once it has a ring. leave have left the set; NeedsStamp returns true for them. Both slices are valid until the
// next Review.
func (s *Set) Review() (join, leave []*Channel) {
	s.period++
	s.messages = 0
	s.join, s.leave = s.join[:0], s.leave[:0]
	for _, c := range s.touched {
		t := &c.traffic
		t.score, t.period, t.recent = s.score(c)+t.recent*scoreOne, s.period, 0
		if t.score >= joinScore && !(t.position > 0 && c.Polled()) {
			s.join = append(s.join, c)
		}
	}
	clear(s.touched)
	s.touched = s.touched[:0]
	slices.SortFunc(s.join, func(a, b *Channel) int {
		return cmp.Or(cmp.Compare(b.traffic.score, a.traffic.score), cmp.Compare(a.ID, b.ID))
	})
	taken := 0
	for i := len(s.members) - 1; i >= 0; i-- {
		switch c := s.members[i]; {
		case c.Polled() && s.score(c) < leaveScore:
			s.dismiss(c)
		case c.Polled():
			taken++
		case !c.Draining():
			s.remove(i)
		}
	}
	for i, c := range s.join {
		if taken < s.capacity {
			taken++
			continue
		}
		weakest := s.weakest()
		if weakest == nil || s.score(weakest) >= s.score(c)/betterBy {
			s.join = s.join[:i]
			break
		}
		s.dismiss(weakest)
	}
	return s.join, s.leave
}

// score returns the current score of a channel.
func (s *Set) score(c *Channel) uint32 { return c.traffic.score >> min(s.period-c.traffic.period, 31) }

// weakest returns the member with the lowest score.
func (s *Set) weakest() (weakest *Channel) {
	for _, c := range s.members {
		if c.Polled() && (weakest == nil || s.score(c) < s.score(weakest)) {
			weakest = c
		}
	}
	return weakest
}

func (s *Set) dismiss(c *Channel) {
	c.SetPolled(false)
	s.leave = append(s.leave, c)
}

// Add makes a channel with a ring a member.
func (s *Set) Add(c *Channel) {
	c.SetPolled(true)
	if c.traffic.position > 0 {
		return
	}
	s.members = append(s.members, c)
	c.traffic.position = len(s.members)
	s.looks = append(s.looks, c.in.look())
	for i, member := range s.members {
		member.in.watched = &s.looks[i]
	}
}

// Remove removes a channel that has ended.
func (s *Set) Remove(c *Channel) {
	if c.traffic.position > 0 {
		s.remove(c.traffic.position - 1)
	}
	s.touched = slices.DeleteFunc(s.touched, func(other *Channel) bool { return other == c })
	// If the channel continues, it is counted anew.
	c.traffic.recent = 0
}

func (s *Set) remove(i int) {
	last := len(s.members) - 1
	gone, moved := s.members[i], s.members[last]
	s.members[i], s.looks[i] = moved, s.looks[last]
	moved.traffic.position, moved.in.watched = i+1, &s.looks[i]
	gone.traffic.position, gone.in.watched = 0, nil
	s.members[last], s.looks[last] = nil, look{}
	s.members, s.looks = s.members[:last], s.looks[:last]
}

// LeaveAll removes all members without a pipe, and returns the channels whose peers need a stamp. It is for a rank that
// is going to sleep, because a write wakes no rank. What a peer writes until it knows that comes before its eager
// response, which wakes the rank.
func (s *Set) LeaveAll() (leave []*Channel) {
	s.leave = s.leave[:0]
	for _, c := range s.members {
		if c.Polled() && c.in.pipe == nil {
			s.dismiss(c)
		}
	}
	return s.leave
}

// pollTime is the time that this processor takes to poll a ring. It is measured once, over as many rings as a large set
// has.
var pollTime = sync.OnceValue(func() time.Duration {
	// The shortest of several measurements is taken, because nothing has interrupted it.
	const rings, rounds, tries = 64, 32, 8
	var s Set
	memory := make([]byte, rings*bufferStride)
	for i := range rings {
		s.looks = append(s.looks, ringLook(word(memory, i*bufferStride)))
	}
	least := time.Hour
	for range tries {
		begun := time.Now()
		for range rounds {
			s.Next(0)
		}
		least = min(least, time.Since(begun))
	}
	return max(least/(rings*rounds), 1)
})

// bufferStride is the distance between the heads of rings.
const bufferStride = 10<<10 + 256 + 64

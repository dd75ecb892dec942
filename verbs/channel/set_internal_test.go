package channel

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// tiny is a ring of few bytes.
var tiny = Config{Buffers: 2, BufferBytes: 64, MaxMessage: 8}

// owners are channels with rings.
func owners(t testing.TB, n int) []*Channel {
	channels := make([]*Channel, n)
	for i := range channels {
		channels[i] = New(Traits{})
		channels[i].ID = i
		require.NoError(t, channels[i].Own(tiny, aligned(tiny.Bytes())))
	}
	return channels
}

// period has a set count messages of channels as counts say, and adds those that are to join.
func period(s *Set, channels []*Channel, counts ...int) (joined, left []int) {
	for i, n := range counts {
		for range n {
			s.CountMessage(channels[i])
		}
	}
	join, leave := s.Review()
	for _, c := range join {
		s.Add(c)
		joined = append(joined, c.ID)
	}
	for _, c := range leave {
		left = append(left, c.ID)
	}
	return joined, left
}

// drained has the peers of channels say that they use their rings no more.
func drained(channels []*Channel) {
	for _, c := range channels {
		if c.Draining() {
			c.takeStamp(stamp(c.in.expected))
		}
	}
}

func TestSetFollowsTraffic(t *testing.T) {
	s, c := NewSet(20, 10), owners(t, 4)
	require.Equal(t, 2, s.Capacity())
	joined, left := period(s, c, 1, 0, 0, 0)
	require.Empty(t, joined, "one message is no traffic")
	require.Empty(t, left)
	joined, _ = period(s, c, 3, 9, 5, 0)
	require.Equal(t, []int{1, 2}, joined, "the busiest")
	require.True(t, c[1].NeedsStamp())
	require.False(t, c[0].NeedsStamp())
	joined, left = period(s, c, 12, 9, 9, 0)
	require.Empty(t, joined, "not much busier than the others")
	require.Empty(t, left)
	joined, left = period(s, c, 60, 3, 1, 0)
	require.Equal(t, []int{0}, joined)
	require.Equal(t, []int{2}, left)
	require.True(t, c[2].Draining())
	require.Equal(t, 3, s.Len(), "a channel that leaves is polled until its peer knows")
	period(s, c, 9, 9)
	require.Equal(t, 3, s.Len(), "it has not")
	drained(c)
	period(s, c, 9, 9)
	require.Equal(t, 2, s.Len())
	require.False(t, c[2].Draining())

	// A member without messages leaves in the end, though no other channel wants its place.
	for i := 0; ; i++ {
		require.Less(t, i, 20)
		if _, left = period(s, c, 0, 9); len(left) > 0 {
			break
		}
	}
	require.Equal(t, []int{0}, left)

	// One who is leaving and is busy again stays.
	joined, _ = period(s, c, 90, 9)
	require.Equal(t, []int{0}, joined)
	require.Equal(t, 2, s.Len())
	require.False(t, c[0].Draining())

	s.Remove(c[1])
	require.Equal(t, 1, s.Len())
	require.Equal(t, []*Channel{c[0]}, s.LeaveAll())
	drained(c)
	period(s, c)
	require.Zero(t, s.Len())
}

// The number of messages decides when a set is reviewed, and a set without a budget stays empty.
func TestSetIsDue(t *testing.T) {
	s, c := NewSet(0, time.Nanosecond), owners(t, 1)
	for i := range 2 * periodMessages {
		if due := s.CountMessage(c[0]); due != (i%periodMessages == periodMessages-1) {
			t.Fatalf("message %d: due %t", i, due)
		} else if due {
			join, _ := s.Review()
			require.Empty(t, join)
		}
	}
	require.Equal(t, maxMembers, NewSet(time.Hour, 0).Capacity())
}

// A set finds the rings in which there is something, wherever they have got to.
func TestSetFinds(t *testing.T) {
	s := NewSet(1000, 1)
	var from, to []*Channel
	for i := range 5 {
		f, c := connected(t, Traits{}, tiny)
		c.ID = i
		s.Add(c)
		from, to = append(from, f), append(to, c)
	}
	s.remove(1)
	for round := range 10 {
		// The last has got the place of the one that was removed.
		n := 3 + round%2
		require.Equal(t, -1, s.Next(0))
		from[n].Place(8)
		write(from[n], to[n], from[n].Seal(8))
		i := s.Next(0)
		require.Equal(t, n, s.At(i).ID, "round %d", round)
		require.Equal(t, -1, s.Next(i+1))
		m, some, err := s.At(i).Poll()
		require.True(t, some)
		require.NoError(t, err)
		s.At(i).Free(m)
		sendStamp(t, to[n], from[n])
	}
}

// BenchmarkSet polls rings in which there is nothing (figure 20).
func BenchmarkSet(b *testing.B) {
	for rings := 1; rings <= 128; rings *= 2 {
		b.Run(fmt.Sprint(rings), func(b *testing.B) {
			s := NewSet(time.Hour, 1)
			for range rings {
				c := New(Traits{})
				config := DefaultConfig()
				require.NoError(b, c.Own(config, aligned(config.Bytes())))
				s.Add(c)
			}
			b.ReportAllocs()
			for b.Loop() {
				if s.Next(0) >= 0 {
					b.Fatal("a message in an empty ring")
				}
			}
		})
	}
}

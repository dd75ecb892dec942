package job

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"

	"github.com/onesided/rma/internal/progress"
	"github.com/onesided/rma/verbs"
)

// A hostedTally is ranks that are apart, but have blocks of tallies in memory that they share:
// rank r as if it were of host of[r].
type hostedTally struct {
	of     []int
	blocks [][]byte
	worlds []*World
}

func newHosted(of []int) *hostedTally {
	h := &hostedTally{of: of, worlds: make([]*World, len(of))}
	for range of {
		h.blocks = append(h.blocks, make([]byte, MeetingBytes+TallyBytes(len(of))))
	}
	return h
}

// bell rings another rank.
type bell struct {
	verbs.Neighbor
	of *World
}

func (b bell) Wake() { b.of.engine.Wake() }

// meeting is the one of a rank.
func (h *hostedTally) meeting(ctx context.Context, w *World) (*Meeting, error) {
	contacts, ranks := make([]contact, w.size), make([]introduction, w.size)
	for rank, host := range h.of {
		contacts[rank].addresses[sharedCard] = "some"
		ranks[rank].host = fmt.Sprint(host)
	}
	w.hosts = hostsOf(contacts, ranks)
	h.worlds[w.rank] = w
	m := w.NewMeeting(w.NewNumber(), h.blocks[w.rank], MeetingBytes, func(rank int) ([]byte, error) { return h.blocks[rank], nil })
	if err := w.Barrier(ctx); err != nil {
		return nil, err
	}
	for rank, other := range h.worlds {
		var neighbor verbs.Neighbor = bell{of: other}
		w.neighbors[rank].Store(&neighbor)
	}
	return m, w.Barrier(ctx)
}

var placements = map[string][]int{
	"one host":          {0, 0, 0, 0, 0},
	"two in turn":       {0, 1, 0, 1},
	"three, in blocks":  {0, 0, 0, 1, 1, 2},
	"one that has many": {0, 1, 1, 1, 1, 1, 2},
	"five in disorder":  {0, 1, 2, 1, 3, 4, 0, 2, 4, 0},
	"seven":             {0, 1, 2, 3, 4, 5, 6, 0},
}

// Also where ranks share memory each hears how many have sent it something, whether calls are
// cut short or not, and nobody comes from EndTally before all mates have called it.
func TestTallyOfHosts(t *testing.T) {
	for name, of := range placements {
		t.Run(name, func(t *testing.T) {
			h := newHosted(of)
			size, ends := len(of), make([]atomic.Uint32, len(of))
			runApart(t, size, func(ctx context.Context, w *World) error {
				m, err := h.meeting(ctx, w)
				if err != nil {
					return err
				}
				defer m.Close()
				ended, end := context.WithCancel(ctx)
				end()
				for number := range uint32(60) {
					// All draw the same: who has sent to whom.
					random := rand.New(rand.NewPCG(2, uint64(number)))
					density := []float64{0, 0.1, 0.5, 1}[number%4]
					sent, want, anything := make([]bool, size), 0, false
					for from := range size {
						for to := range size {
							sends := to != from && random.Float64() < density
							anything = anything || sends
							if from == w.rank {
								sent[to] = sends
							}
							if sends && to == w.rank {
								want++
							}
						}
					}
					cut := number%3 == uint32(w.rank)%3
					call := func(ctx context.Context) (int, bool, error) {
						return m.Tally(ctx, "Tally", 0, number+1, func(rank int) bool { return sent[rank] })
					}
					if cut {
						if _, _, err := call(ended); err != nil && !errors.Is(err, context.Canceled) {
							return err
						}
					}
					got, some, err := call(ctx)
					if err != nil {
						return err
					}
					if got != want || some != anything {
						return fmt.Errorf("tally %d is %d, %v, want %d, %v", number+1, got, some, want, anything)
					}
					ends[w.rank].Store(number + 1)
					if cut {
						if err := m.EndTally(ended, "EndTally"); err != nil && !errors.Is(err, context.Canceled) {
							return err
						}
					}
					if err := m.EndTally(ctx, "EndTally"); err != nil {
						return err
					}
					for _, mate := range w.mates() {
						if anything && ends[mate].Load() <= number {
							return fmt.Errorf("rank %d has come from EndTally %d before rank %d has called it", w.rank, number+1, mate)
						}
					}
				}
				return w.Barrier(ctx)
			})
		})
	}
}

// That a rank leaves before it has done its part all hear who wait for it, for one who waits
// for it, or share memory with one who does, though nobody else leaves before all have.
func TestTallyWithoutLeaver(t *testing.T) {
	for name, c := range map[string]struct {
		of     []int
		leaver int
	}{
		"one that leads":             {[]int{0, 1, 0, 1}, 0},
		"another that leads":         {[]int{0, 1, 0, 1}, 1},
		"a mate":                     {[]int{0, 1, 0, 1}, 2},
		"a mate elsewhere":           {[]int{0, 1, 0, 1}, 3},
		"a mate of three hosts":      {[]int{0, 1, 2, 0, 1, 2}, 3},
		"the last of three hosts":    {[]int{0, 1, 2, 0, 1, 2}, 5},
		"a mate of five hosts":       {[]int{0, 1, 2, 3, 4, 2, 3}, 5},
		"one that leads among five":  {[]int{0, 1, 2, 3, 4, 2, 3}, 2},
		"one that is alone of three": {[]int{0, 0, 1, 2, 2}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHosted(c.of)
			size, know := len(c.of), make(chan struct{}, len(c.of))
			all := make(chan struct{})
			go func() {
				for range size - 1 {
					<-know
				}
				close(all)
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := Run(ctx, size, func(ctx context.Context, w *World) error {
				m, err := h.meeting(ctx, w)
				if err != nil {
					return err
				}
				if w.rank == c.leaver {
					return w.Close()
				}
				_, _, err = m.Tally(ctx, "Tally", 0, 1, func(int) bool { return false })
				var lost *PeerError
				if !errors.As(err, &lost) || !errors.Is(err, ErrLeft) {
					return fmt.Errorf("error is %v, want a *PeerError that is %w", err, ErrLeft)
				}
				if lost.Rank != c.leaver {
					return fmt.Errorf("%w, want rank %d", err, c.leaver)
				}
				know <- struct{}{}
				select {
				case <-all:
				case <-ctx.Done():
				}
				return w.Close()
			}, append(apart(), WithPeerTimeout(time.Minute), sleeping(forever))...)
			require.NoError(t, err)
		})
	}
}

// A mate that was told before another may leave then, and the other does not miss it.
func TestTallyBesideLeaver(t *testing.T) {
	h := newHosted([]int{0, 0, 0})
	told := func(rank int) *atomic.Uint32 {
		b := meetingBlockOver(h.blocks[rank])
		return b.tally(MeetingBytes).told()
	}
	missed := make(chan error, 1)
	runApart(t, 3, func(ctx context.Context, w *World) error {
		m, err := h.meeting(ctx, w)
		if err != nil {
			return err
		}
		tally := func(ctx context.Context) error {
			_, _, err := m.Tally(ctx, "Tally", 0, 1, func(int) bool { return false })
			return err
		}
		switch w.rank {
		case 0:
			told(1).Store(1)
			return errors.Join(<-missed, tally(ctx))
		case 1:
			return tally(ctx)
		}
		for {
			if _, left := w.barrier.left(1); left {
				break
			}
			w.Poll()
		}
		soon, stop := context.WithTimeout(ctx, 50*time.Millisecond) // expires
		defer stop()
		err = tally(soon)
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		missed <- err
		return errors.Join(err, tally(ctx))
	})
}

// Who has left behind a tally is not absent from it for one that was not told of its end yet,
// though a mate that was misses it in the next.
func TestTallyBeforeAbsence(t *testing.T) {
	h := newHosted([]int{0, 0, 0, 1})
	told := func(rank int) *atomic.Uint32 {
		b := meetingBlockOver(h.blocks[rank])
		return b.tally(MeetingBytes).told()
	}
	begun, missed, heard := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	runApart(t, 4, func(ctx context.Context, w *World) error {
		m, err := h.meeting(ctx, w)
		if err != nil {
			return err
		}
		tally := func(ctx context.Context, number uint32) error {
			_, _, err := m.Tally(ctx, "Tally", 0, number, func(int) bool { return false })
			return err
		}
		switch w.rank {
		case 0:
			told(1).Store(1)
			close(begun)
			return <-heard
		case 1:
			<-begun
			defer close(missed)
			if err := tally(ctx, 1); err != nil {
				return err
			}
			if err := tally(ctx, 2); !errors.Is(err, ErrLeft) {
				return fmt.Errorf("error of the next is %v, want %w", err, ErrLeft)
			}
			return nil
		case 2:
			<-missed
			soon, stop := context.WithTimeout(ctx, 50*time.Millisecond) // expires
			defer stop()
			if err = tally(soon, 1); errors.Is(err, context.DeadlineExceeded) {
				err = nil
			}
			heard <- err
			return err
		}
		m.own.come().Store(1)
		return nil
	})
}

// Where ranks do not tally they do not look in the block of the one that leads either, which
// may have freed it.
func TestMeetOfMates(t *testing.T) {
	h, waited := newHosted([]int{0, 0}), make(chan struct{})
	runApart(t, 2, func(ctx context.Context, w *World) error {
		m, err := h.meeting(ctx, w)
		if err != nil {
			return err
		}
		defer m.Close()
		if w.rank == 0 {
			<-waited
			return m.Meet(ctx, "Meet", 0, 1)
		}
		defer close(waited)
		m.other = func(rank int) ([]byte, error) {
			t.Errorf("rank 1 looks in the block of rank %d", rank)
			return h.blocks[rank], nil
		}
		soon, stop := context.WithTimeout(ctx, 20*time.Millisecond) // expires
		defer stop()
		if err := m.Meet(soon, "Meet", 0, 1); !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("error is %v, want %w", err, context.DeadlineExceeded)
		}
		return nil
	})
}

// Mates who are said to have sent something to a rank, but are more than there are, are an error of the one that leads.
func TestTallyOfMoreThanTheMates(t *testing.T) {
	h := newHosted([]int{0, 0, 1})
	runApart(t, 3, func(ctx context.Context, w *World) error {
		m, err := h.meeting(ctx, w)
		if err != nil {
			return err
		}
		defer m.Close()
		if w.rank == 0 {
			own := m.own.tally(MeetingBytes)
			own.arrived().Store(1)
			own.count(2).Store(2)
			_, _, err := m.Tally(ctx, "Tally", 0, 1, func(rank int) bool { return rank == 2 })
			assert.ErrorIs(t, err, ErrMessage)
			assert.ErrorContains(t, err, "3 of 2 ranks of this host are said to have sent something to rank 2")
			assert.Zero(t, w.FailureCount())
		}
		return w.Barrier(ctx)
	})
}

// The one that leads fails when it tells a mate that more ranks have sent it something than there are.
func TestTallyOfMoreThanAll(t *testing.T) {
	h := newHosted([]int{0, 0})
	over := make(chan struct{})
	var failed error
	_ = Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		m, err := h.meeting(ctx, w)
		if err != nil {
			return err
		}
		defer m.Close()
		if w.rank == 0 {
			<-over
			return nil
		}
		defer close(over)
		own := m.own.tally(MeetingBytes)
		own.arrivals().Store(3)
		own.told().Store(1)
		_, _, failed = m.Tally(ctx, "Tally", 0, 1, func(int) bool { return false })
		return nil
	}, apart()...)
	var peer *PeerError
	require.ErrorAs(t, failed, &peer)
	require.Equal(t, 0, peer.Rank)
	require.ErrorIs(t, failed, ErrMessage)
	require.ErrorContains(t, failed, "3 of 2 ranks have sent something to this one")
}

// Ranks are of one host that have opened shared memory on it, and the World knows whether it
// maps just those.
func TestHosts(t *testing.T) {
	shared, apart := contact{}, contact{}
	shared.addresses[sharedCard] = "some"
	on := func(host string) introduction { return introduction{host: host} }
	h := hostsOf([]contact{apart, shared, shared, shared, apart}, []introduction{on("a"), on("b"), on("a"), on("b"), on("a")})
	require.Equal(t, [][]int{{0}, {1, 3}, {2}, {4}}, h.ranks)
	require.Equal(t, []int{0, 1, 2, 1, 3}, h.of)
	require.NoError(t, Run(t.Context(), 3, func(_ context.Context, w *World) error {
		n, regular := w.Hosts()
		if n != 1 || !regular {
			return fmt.Errorf("%d hosts, regular: %v, want 1, true", n, regular)
		}
		if w.rank != 0 {
			return nil
		}
		w.hosts = hostsOf([]contact{shared, shared, shared}, []introduction{on("a"), on("b"), on("a")})
		if n, regular = w.Hosts(); n != 2 || regular {
			return fmt.Errorf("%d hosts, regular: %v, want 2, false: it maps rank 1", n, regular)
		}
		return nil
	}))
}

// The leader of a host sleeps in a tally until its mates have told it, and is woken by one that leaves instead, also where that
// one wakes only the root for meetings.
func TestMateLeavesTally(t *testing.T) {
	const root, lead, leaver, n = 0, 1, 2, 3
	blocks := make([][]byte, n)
	for rank := range blocks {
		blocks[rank] = make([]byte, MeetingBytes+TallyBytes(n))
	}
	// before is how long the leader had slept before its Tally.
	var before time.Duration
	waiting, missed := make(chan *World, 1), make(chan struct{})
	require.NoError(t, Run(t.Context(), n, func(ctx context.Context, w *World) error {
		// The root is no mate of the others.
		w.hosts = hosts{of: []int{0, 0, 0}, ranks: [][]int{{lead, leaver}}}
		m := w.NewMeeting(w.NewNumber(), blocks[w.rank], MeetingBytes, func(rank int) ([]byte, error) { return blocks[rank], nil })
		defer m.Close()
		switch w.rank {
		case lead:
			defer close(missed)
			_, before = w.engine.Sleeps()
			waiting <- w
			if _, _, err := m.Tally(ctx, "Tally", 0, 1, func(int) bool { return false }); !errors.Is(err, ErrLeft) {
				return fmt.Errorf("error is %v, want %w", err, ErrLeft)
			}
		case leaver:
			w := <-waiting
			// A sleep after the first lasts until it is woken.
			return await.Until(ctx, "the leader's first sleep to end", func() bool {
				_, slept := w.engine.Sleeps()
				return slept-before > progress.FirstSleep/2
			})
		case root:
			<-missed
		}
		return nil
	}, onCores(1), sleeping(forever)))
}

package world

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// A rank that counts itself twice, runs ahead or goes back in a meeting breaks the rules,
// and changes nothing by it.
func TestMeetingOutOfTurn(t *testing.T) {
	arrive := func(number uint64) Message { return Message{Kind: kindArrive, X: number} }
	round := func(number uint64) Message { return Message{Kind: kindRound, X: number} }
	release := func(number uint64) Message { return Message{Kind: kindRelease, X: number} }
	type script struct {
		name string
		// rank is told by the other one of good, and then of what is bad.
		rank int
		good []Message
		bad  Message
	}
	scripts := []script{
		{"arriving twice", 0, []Message{arrive(1)}, arrive(1)},
		{"arriving early", 0, nil, arrive(2)},
		{"arriving before the others", 0, []Message{arrive(1)}, arrive(2)},
		{"arriving at no number", 0, nil, arrive(0)},
		{"a round back", 1, []Message{round(1), round(2), round(2)}, round(1)},
		{"a round ahead", 1, []Message{round(1)}, round(3)},
		{"a release back", 1, []Message{release(1), release(2), release(2)}, release(1)},
		{"a release ahead", 1, []Message{release(1)}, release(3)},
	}
	for _, c := range scripts {
		t.Run(c.name, func(t *testing.T) {
			runApart(t, 2, func(_ context.Context, w *World) error {
				if w.rank != c.rank {
					return nil
				}
				m := w.NewMeeting(w.NewNumber(), make([]byte, MeetingBytes), NoTally, nil)
				defer m.Close()
				from := &Link{world: w, rank: 1 - w.rank}
				for i := range c.good {
					if err := m.serve(from, &c.good[i], nil); err != nil {
						return err
					}
				}
				counts := func() [3]uint32 {
					return [3]uint32{m.own.round(0).Load(), m.own.arrived().Load(), m.own.released().Load()}
				}
				before := counts()
				if err := m.serve(from, &c.bad, nil); !errors.Is(err, ErrMessage) {
					return fmt.Errorf("error is %v, want %v", err, ErrMessage)
				}
				if after := counts(); after != before {
					return fmt.Errorf("counts were %v, and are %v", before, after)
				}
				return nil
			})
		})
	}
}

// A rank's flags belong to progress and to those who map them: nobody has a key to them who
// is told of them by messages.
func TestBlockIsNotRemote(t *testing.T) {
	runApart(t, 2, func(_ context.Context, w *World) error {
		if block := w.Place(1-w.rank, &w.job.contacts[1-w.rank].block); block != (verbs.RemoteRegion{}) {
			return fmt.Errorf("the block of rank %d is %+v over the network", 1-w.rank, block)
		}
		return nil
	})
}

// meetMapped runs ranks that share a core, and have a meeting whose blocks they map.
func meetMapped(t *testing.T, n int, body func(ctx context.Context, w *World, m *Meeting) error) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	blocks := make([][]byte, n)
	for rank := range blocks {
		blocks[rank] = make([]byte, MeetingBytes)
	}
	require.NoError(t, Run(ctx, n, func(ctx context.Context, w *World) error {
		m := w.NewMeeting(w.NewNumber(), blocks[w.rank], NoTally, func(rank int) ([]byte, error) { return blocks[rank], nil })
		defer m.Close()
		for _, meet := range []func() error{func() error { return w.Barrier(ctx) }, func() error { return m.Meet(ctx, "Meet", 1) }} {
			if err := meet(); err != nil {
				return err
			}
		}
		return body(ctx, w, m)
	}))
}

// That a rank has left all hear who wait for it at the root, though nobody else leaves before they have, and whether
// the root waits with them or comes only then.
func TestMeetWithoutLeaver(t *testing.T) {
	for _, c := range []struct{ n, leaver int }{{3, 2}, {4, 1}, {12, 1}, {12, 5}, {12, 11}, {80, 79}} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("rank %d of %d, late root: %v", c.leaver, c.n, late), func(t *testing.T) {
				var others, all sync.WaitGroup
				others.Add(c.n - 2)
				all.Add(c.n - 1)
				meetMapped(t, c.n, func(ctx context.Context, w *World, m *Meeting) error {
					if w.rank == c.leaver {
						return nil
					}
					if w.rank == 0 && late {
						others.Wait()
					}
					err := m.Meet(ctx, "Meet", 2)
					if w.rank != 0 {
						others.Done()
					}
					all.Done()
					all.Wait()
					var lost *PeerError
					if !errors.As(err, &lost) || !errors.Is(err, ErrLeft) || lost.Rank != c.leaver {
						return fmt.Errorf("error is %w, want that rank %d has left", err, c.leaver)
					}
					return nil
				})
			})
		}
	}
}

// A rank that has come to the root, and leaves without having waited there, is not missed, but one that leaves after it is.
func TestMeetBesideLeaver(t *testing.T) {
	const n, beside, last, absent = 12, 4, 11, 5
	for _, missed := range []bool{false, true} {
		t.Run(fmt.Sprintf("another is missed: %v", missed), func(t *testing.T) {
			ended, end := context.WithCancel(t.Context())
			end()
			meetMapped(t, n, func(ctx context.Context, w *World, m *Meeting) error {
				switch {
				case w.rank == beside:
					if err := m.Meet(ended, "Meet", 2); !errors.Is(err, context.Canceled) {
						return fmt.Errorf("error is %v, want %w", err, context.Canceled)
					}
					return nil
				case w.rank == absent && missed, w.rank == last:
					if err := until(ctx, w, "one has left", func() bool { return w.Gone(beside) }); err != nil {
						return err
					}
					if w.rank == absent {
						return nil
					}
					time.Sleep(50 * time.Millisecond)
				}
				err := m.Meet(ctx, "Meet", 2)
				var lost *PeerError
				if missed && errors.As(err, &lost) && errors.Is(err, ErrLeft) && lost.Rank == absent {
					return nil
				}
				if missed {
					return fmt.Errorf("error is %w, want that rank %d has left", err, absent)
				}
				return err
			})
		})
	}
}

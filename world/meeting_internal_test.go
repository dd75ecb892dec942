package world

import (
	"context"
	"errors"
	"fmt"
	"testing"

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

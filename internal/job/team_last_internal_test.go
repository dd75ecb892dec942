package job

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A laterContext ends when the last meeting of a team has been left for the first time, at its own look for deserters.
type laterContext struct {
	context.Context
	team *World
}

func (c *laterContext) Err() error {
	if c.team.last.stall.since == 0 {
		return nil
	}
	return context.Canceled
}

// A context that ends while a Close looks for who deserts the last meeting of its team cuts Close short, which is then not one that goes without
// the others: another meets them, and gives the memory of the team back.
func TestCutBetweenLastMeetings(t *testing.T) {
	t.Parallel()
	for name, options := range forms {
		t.Run(name, func(t *testing.T) {
			cut := make(chan struct{})
			require.NoError(t, Run(t.Context(), 2, func(ctx context.Context, w *World) error {
				team, err := w.Split(ctx, 0, 0)
				if err != nil {
					return err
				}
				if w.rank == 1 {
					return errors.Join(receive(ctx, cut), team.Close())
				}
				err = team.CloseContext(&laterContext{context.Background(), team})
				if !errors.Is(err, context.Canceled) || team.leaving.alone {
					err = fmt.Errorf("error of a Close that is cut short is %w, and it goes alone: %v", err, team.leaving.alone)
				} else {
					err = nil
				}
				close(cut)
				err = errors.Join(err, team.Close())
				if team.leaving.alone {
					err = errors.Join(err, errors.New("Close has not met the others"))
				}
				return err
			}, options()...))
		})
	}
}

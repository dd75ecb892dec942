package job

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// A rank that waits in an exchange tells so, the more seldom the longer it waits, and no
// more when the exchange has returned.
func TestExchangeIsAttended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := Settings{logger: slog.New(slog.NewTextHandler(&log, nil))}
		broken := errors.New("the store is down")
		for _, c := range []struct {
			stall, takes time.Duration
			told         []string
		}{
			{DefaultStall, 2900 * time.Millisecond, nil},
			{DefaultStall, 8 * time.Second, []string{"3s"}},
			{DefaultStall, 59 * time.Second, []string{"3s", "9s", "21s", "45s"}},
			{time.Minute, 8 * time.Second, []string{"3s"}},
			{500 * time.Millisecond, 4 * time.Second, []string{"500ms", "1.5s", "3.5s"}},
			{0, time.Hour, nil},
		} {
			log.Reset()
			s.stall = c.stall
			_, err := s.attended(func(context.Context, string) ([]string, error) {
				time.Sleep(c.takes) // computes, in virtual time
				return nil, broken
			}, 1, 3)(t.Context(), "text")
			require.ErrorIs(t, err, broken)
			time.Sleep(time.Hour) // computes, in virtual time
			lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
			require.Equal(t, len(c.told), strings.Count(log.String(), "\n"), "%s", &log)
			for i, told := range c.told {
				require.Contains(t, lines[i]+"\n", `level=WARN msg="waits for the other ranks, with which it exchanges where each is" rank=1 size=3 for=`+told+"\n")
			}
		}
	})
}

// A second process that says that it is a rank is told so by who has the first.
func TestRankTwice(t *testing.T) {
	runApart(t, 2, func(ctx context.Context, w *World) error {
		// Rank 1 has the connection of rank 0 when it has answered over it.
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.rank == 0 {
			err := refusedBy(ctx, w, 1, hello(laneLink, 0, 0))
			require.ErrorIs(t, err, verbs.ErrRejected)
			require.ErrorContains(t, err, "another process says that it is rank 0, too")
		}
		return w.Barrier(ctx)
	})
}

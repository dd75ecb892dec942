package job_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/doctest"
	"github.com/onesided/rma/world"
)

// sumProgram builds the program of docs/guide/launching.md that joins by world.New, whose ranks exchange through a directory.
func sumProgram(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("skipped: ranks that are processes need Linux")
	}
	blocks := doctest.Blocks(t, filepath.Join("..", "..", "docs", "guide", "launching.md"))
	i := slices.IndexFunc(blocks, func(b doctest.Block) bool { return strings.HasPrefix(b.Text, "// Sum has") })
	require.NotEqual(t, -1, i)
	return doctest.Build(t, blocks[i])
}

// A newRank is a process that joins by world.New.
type newRank struct {
	*exec.Cmd
	out, errout bytes.Buffer
}

// startNew starts a rank of the README's program.
func startNew(t *testing.T, program, directory string, rank, size int, environment ...string) *newRank {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	t.Cleanup(cancel)
	r := &newRank{Cmd: exec.CommandContext(ctx, program, directory, strconv.Itoa(rank), strconv.Itoa(size))}
	r.Env = append(os.Environ(), "RMA_DEVICE=", "RMA_HOST=", "RMA_ADDRESS=")
	r.Env = append(r.Env, environment...)
	r.Stdout, r.Stderr = &r.out, &r.errout
	require.NoError(t, r.Start())
	t.Cleanup(func() { _ = r.Process.Kill() })
	return r
}

func TestNew(t *testing.T) {
	busy.Acquire(t)
	program := sumProgram(t)
	t.Run("joined", func(t *testing.T) { newJoined(t, program) })
	t.Run("declined", func(t *testing.T) { newDeclined(t, program) })
	t.Run("sizes", func(t *testing.T) { newSizes(t, program) })
}

// newJoined checks that processes that have found each other by means of their own are a job, wherever they are,
// and in whatever order they start.
func newJoined(t *testing.T, program string) {
	const size = 4
	alternating := func(rank int) []string { return []string{fmt.Sprintf("RMA_HOST=host%d", rank%2)} }
	for _, c := range []struct {
		name        string
		environment func(rank int) []string
		// routes are those of ranks 1, 2 and 3 to rank 0.
		routes [size - 1]string
	}{
		{"one host", func(int) []string { return nil }, [...]string{"shm, mapped", "shm, mapped", "shm, mapped"}},
		{"two hosts", alternating, [...]string{"tcp", "shm, mapped", "tcp"}},
		{"tcp", func(int) []string { return []string{"RMA_DEVICE=tcp"} }, [...]string{"tcp", "tcp", "tcp"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			directory, ranks := t.TempDir(), make([]*newRank, size)
			for _, rank := range []int{2, 0, 3, 1} {
				ranks[rank] = startNew(t, program, directory, rank, size, c.environment(rank)...)
			}
			for rank, r := range ranks {
				require.NoError(t, r.Wait(), "rank %d: %s", rank, &r.errout)
				want := "the sum over 4 ranks is 6\n"
				if rank > 0 {
					want = fmt.Sprintf("rank %d reaches rank 0 by: %s\n", rank, c.routes[rank-1])
				}
				require.Equal(t, want, r.out.String())
				require.Empty(t, withoutWaits(r.errout.String()))
			}
		})
	}
}

// withoutWaits is a log without the lines of ranks that wait for others to join, which on a busy machine may start seconds later.
func withoutWaits(log string) (other string) {
	for line := range strings.Lines(log) {
		if !strings.Contains(line, "waits for the other ranks") {
			other += line
		}
	}
	return other
}

// newDeclined checks that a rank that cannot join has all others hear why, through the exchange that they have.
func newDeclined(t *testing.T, program string) {
	directory := t.TempDir()
	const size, wrong = 3, 1
	var ranks []*newRank
	for rank := range size {
		environment := []string{"RMA_DEVICE=tcp"}
		if rank == wrong {
			environment = []string{"RMA_DEVICE=shm"}
		}
		ranks = append(ranks, startNew(t, program, directory, rank, size, environment...))
	}
	for rank, r := range ranks {
		var exit *exec.ExitError
		require.ErrorAs(t, r.Wait(), &exit)
		require.Empty(t, r.out.String())
		require.Contains(t, r.errout.String(), "ranks disagree", "rank %d", rank)
		require.Contains(t, r.errout.String(), "RMA_DEVICE=shm")
	}
}

// What an exchange gives is looked at: one that goes wrong is an error, on the rank where
// it does, and a rank that does not come is one when the patience is over.
func TestNewExchange(t *testing.T) {
	broken := errors.New("the store is down")
	for _, c := range []struct {
		name     string
		exchange world.Exchange
		says     string
	}{
		{"fails", func(context.Context, string) ([]string, error) { return nil, broken }, broken.Error()},
		{"too few", func(_ context.Context, mine string) ([]string, error) { return []string{mine}, nil }, "1 text for 2 ranks"},
		{"exchanged", func(_ context.Context, mine string) ([]string, error) { return []string{mine, mine}, nil }, "the text of rank 0 in the place of rank 1"},
		{"nonsense", func(_ context.Context, mine string) ([]string, error) { return []string{mine, "nonsense"}, nil }, "rank 1 has protocol version nonsense, this rank protocol version rma15"},
		{"patience", localExchange(2)(0), "not all of 2 ranks started within 10ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := world.New(t.Context(), 0, 2, c.exchange, world.WithStartTimeout(10*time.Millisecond))
			require.ErrorContains(t, err, "world: New: ")
			require.ErrorContains(t, err, c.says)
		})
	}
}

package job

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who listens to failures may use the World meanwhile, although it was progress that
// noticed them, and may make another.
func TestListenerUsesTheWorld(t *testing.T) {
	heard := make(chan error)
	err := Run(t.Context(), 2, func(ctx context.Context, w *World) error {
		if w.rank == 1 {
			return <-heard
		}
		shrunk := make(chan error)
		defer w.OnFailure(func(*PeerError) {
			w.KeepProgress()
			small, err := w.Shrink(ctx)
			if err == nil && small.Size() != 1 {
				err = errors.New("it is in a World with one that has failed")
			}
			if err == nil {
				err = small.Close()
			}
			shrunk <- err
		})()
		w.engine.Lock()
		w.roster.fail(1, errors.New("this test says so"))
		w.engine.Unlock()
		err := <-shrunk
		heard <- nil
		return err
	}, apart()...)
	require.NoError(t, err)
}

// Listeners are told in order, until they stop.
func TestListenersHearInOrder(t *testing.T) {
	const size = 50
	w := &World{endpoint: new(endpoint), roster: newRoster(size)}
	heard := make(chan int, size)
	stop := w.OnFailure(func(e *PeerError) { heard <- e.Rank })
	for rank := range size - 1 {
		w.roster.fail(rank, errors.New("gone"))
	}
	for rank := range size - 1 {
		require.Equal(t, rank, <-heard)
	}
	stop()
	w.roster.fail(size-1, errors.New("gone"))
	require.Empty(t, heard)
}

// Who is told at once knows of a failure before others can see that there is one.
func TestToldAtOnce(t *testing.T) {
	w := &World{roster: newRoster(2)}
	told := false
	w.OnFailureAtOnce(func(rank int) {
		told = true
		require.Equal(t, 1, rank)
		require.Zero(t, w.FailureCount())
		require.NoError(t, w.Failure(rank))
	})
	w.roster.fail(1, errors.New("gone"))
	require.True(t, told)
	require.EqualValues(t, 1, w.FailureCount())
	require.Error(t, w.Failure(1))
}

// A bulletin that has ended tells no more, but for the word that it is in the midst of,
// which its goroutine outlasts.
func TestBulletinEnds(t *testing.T) {
	var heard []int
	speaking, goOn := make(chan int), make(chan struct{})
	b := &bulletin{f: func(rank int) {
		speaking <- rank
		<-goOn
		heard = append(heard, rank)
	}}
	b.add(1)
	b.add(2)
	require.Equal(t, 1, <-speaking)
	b.end()
	b.add(3)
	close(goOn)
	b.running.Wait()
	require.Equal(t, []int{1}, heard)
	b.add(4)
	b.running.Wait()
	require.Equal(t, []int{1}, heard)
}

package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// TestCloseInLost closes the watching device when it is told that another has gone,
// by each of the goroutines that may notice it.
func TestCloseInLost(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			open := form.open(t)
			near, far := open(), open()
			closed := make(chan error)
			_, err := near.Watch(far.Address(), func(cause error) {
				require.ErrorIs(t, cause, verbs.ErrPeerGone)
				closed <- near.Close()
			})
			require.NoError(t, err)
			require.NoError(t, far.Close())
			require.NoError(t, <-closed)
		})
	}
}

// TestSlowLost has one that is told of a death wait until another has been told too.
func TestSlowLost(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			open := form.open(t)
			near, far := open(), open()
			told := make(chan struct{})
			meet := func(error) {
				select {
				case told <- struct{}{}:
				case <-told:
				}
			}
			done := make(chan struct{}, 2)
			for range 2 {
				_, err := near.Watch(far.Address(), func(cause error) { meet(cause); done <- struct{}{} })
				require.NoError(t, err)
			}
			require.NoError(t, far.Close())
			<-done
			<-done
		})
	}
}

// TestStop stops a watch that has been taken out to be told, but is not told yet.
func TestStop(t *testing.T) {
	device := openFabric(t)()
	called := make(chan error, 2)
	w := &watch{device: device.device, lost: func(cause error) { called <- cause }}
	w.report(verbs.ErrPeerGone)
	require.ErrorIs(t, <-called, verbs.ErrPeerGone)
	w = &watch{device: device.device, lost: w.lost}
	w.stop()
	require.True(t, w.over.Load())
	w.report(verbs.ErrPeerGone)
	last := &watch{device: device.device, lost: w.lost}
	last.report(verbs.ErrClosed)
	require.ErrorIs(t, <-called, verbs.ErrClosed)
}

package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// TestCloseInLost closes the watching device when the end of another is reported to it, by each of the goroutines that
// may detect that end.
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

// TestSlowLost has the report of an end wait until the end was also reported to another watch.
func TestSlowLost(t *testing.T) {
	for _, form := range both {
		t.Run(form.name, func(t *testing.T) {
			open := form.open(t)
			near, far := open(), open()
			reported := make(chan struct{})
			awaitBoth := func(error) {
				select {
				case reported <- struct{}{}:
				case <-reported:
				}
			}
			done := make(chan struct{}, 2)
			for range 2 {
				_, err := near.Watch(far.Address(), func(cause error) { awaitBoth(cause); done <- struct{}{} })
				require.NoError(t, err)
			}
			require.NoError(t, far.Close())
			<-done
			<-done
		})
	}
}

// TestStop stops a watch whose end was found and is not reported yet.
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

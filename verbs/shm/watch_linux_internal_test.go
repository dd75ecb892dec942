//go:build linux

package shm

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestCloseInLostOfProcess closes the device when the goroutine that watches processes reports an end, which it is
// seldom the first to detect: the neighbor's process is one of the test, which ends.
func TestCloseInLostOfProcess(t *testing.T) {
	open := openProcesses(t)
	near, far := open(), open()
	closed := make(chan error)
	_, err := near.Watch(far.Address(), func(error) { closed <- near.Close() })
	require.NoError(t, err)
	p := near.form.(*process)
	n, err := p.link(far.Address())
	require.NoError(t, err)

	child := exec.Command("cat")
	input, err := child.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	pidfd, err := unix.PidfdOpen(child.Process.Pid, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Close(pidfd)) }()
	_, err = p.watcher.process(pidfd, n.end)
	require.NoError(t, err)
	require.NoError(t, input.Close())
	require.NoError(t, child.Wait())
	require.NoError(t, <-closed)
}

package pmi

import (
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A connection that the process did not inherit serves one job: Finalize closes it.
func TestFinalizeOfProgramsConnection(t *testing.T) {
	s := NewServer(1, Events{})
	defer s.Close()
	file, _, err := s.Child(0, 0)
	require.NoError(t, err)
	fd, err := syscall.Dup(int(file.Fd()))
	require.NoError(t, err)
	require.NoError(t, file.Close())
	for name, value := range map[string]string{"PMI_FD": strconv.Itoa(fd), "PMI_RANK": "0", "PMI_SIZE": "1"} {
		t.Setenv(name, value)
	}
	c, err := FromEnvironment()
	require.NoError(t, err)
	require.NoError(t, c.Finalize())
	_, err = c.conn.Write([]byte("\n"))
	require.ErrorIs(t, err, os.ErrClosed)
	s.Wait()
}

// The error for a connection that cannot be used again says why, and names the package once.
func TestNoOtherJob(t *testing.T) {
	rejected := func(c *Client, says string) {
		t.Helper()
		_, err := c.again()
		require.ErrorIs(t, err, ErrTaken)
		require.ErrorContains(t, err, says)
		require.Equal(t, 1, strings.Count(err.Error(), "pmi: "), "%v", err)
	}
	s, clients := newJob(t, 2, Events{})
	for _, c := range clients {
		c.kept = true
	}
	require.NoError(t, clients[0].Finalize())
	rejected(clients[1], "used before in this process, for a job that was not finalized")
	require.NoError(t, s.Close())
	rejected(clients[0], "the manager begins no further job: response_to_init: ")
	rejected(clients[0], "used before in this process, and failed: response_to_init: ")
	_, err := clients[1].Get("a")
	require.Error(t, err)
	rejected(clients[1], "used before in this process, and failed: get_result: ")

	// This manager serves one more job and then rejects. After the rejection the client does not request again.
	near, far := net.Pipe()
	defer far.Close()
	played := make(chan error, 1)
	go func() {
		played <- append(hydra[:4:4], "> cmd=finalize", "< cmd=finalize_ack", hydra[0], "< cmd=response_to_init rc=-1").play(far)
	}()
	c, err := New(near, 0, 1)
	require.NoError(t, err)
	c.kept = true
	require.NoError(t, c.Finalize())
	rejected(c, "the manager begins no further job: rejected by the manager: version 1 is wanted")
	rejected(c, "used before in this process, and failed: rejected by the manager: version 1 is wanted")
	require.NoError(t, <-played)

	_, client := joined(t)
	require.NoError(t, client.Finalize())
	rejected(client, "used before in this process, and the manager serves one job a process")
}

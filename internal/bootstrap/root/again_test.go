package root

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/proof"
)

// welcomed returns the number of connections that the host has not given to the server.
func (h *host) welcomed() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.open)
}

// A rank calls for the next job while the root of the last job still serves other ranks. The rank waits for the end of
// that root and does not delay it. The root does not report it as rejected.
func TestRankComesForTheNextJob(t *testing.T) {
	members := joined(t, 3, ample)
	h := members[0].host
	require.NoError(t, members[1].Finalize())
	next := claim{rank: 1, size: 3, after: members[1].Job()}
	gone := claimed(t, h, next)
	await.Parked(t, "root.awaitEnd", 1)
	require.NoError(t, gone.Close())
	await.True(t, "the root lets go one who has gone", func() bool { return h.welcomed() == 0 })
	waiting := claimed(t, h, next)
	// The next root judges differences between the jobs, not this one.
	other := claimed(t, h, claim{rank: 7, size: 8, after: next.after, terms: "has other terms"})
	await.Parked(t, "root.awaitEnd", 2)
	count, who := h.rejected()
	require.Zero(t, count, who)
	require.NoError(t, members[2].Finalize())
	require.NoError(t, members[0].Finalize())
	for _, conn := range []net.Conn{waiting, other} {
		_, err := readVerdict(conn)
		require.ErrorIs(t, err, io.EOF)
	}
}

// Jobs follow each other at one address. Rank 1 leaves each job first and calls the root while another rank needs it.
// The next job has a new number, the same on all ranks.
func TestJobsFollowEachOther(t *testing.T) {
	const size = 3
	members := joined(t, size, ample)
	root := members[0].host.settings.Root
	for range 3 {
		last := members[0].Job()
		again := make(chan *Member, size)
		join := func(rank int) {
			s := rankOf(root, rank, size)
			s.After = members[rank].Job()
			go func() {
				m, err := Join(t.Context(), s, ample)
				if err != nil {
					t.Errorf("rank %d: %v", rank, err)
				}
				again <- m
			}()
		}
		require.NoError(t, members[1].Finalize())
		join(1)
		await.Parked(t, "root.awaitEnd", 1)
		require.NoError(t, members[2].Finalize())
		require.NoError(t, members[0].Finalize())
		join(2)
		join(0)
		next := make([]*Member, size)
		for range size {
			m := <-again
			require.NotNil(t, m)
			next[m.Rank()] = m
		}
		members = next
		for _, m := range members {
			require.Equal(t, members[0].Job(), m.Job())
			require.NotEqual(t, last, m.Job())
			require.NotZero(t, m.Job())
		}
	}
	for _, rank := range []int{1, 2, 0} {
		require.NoError(t, members[rank].Finalize())
	}
}

// arrivals is a listener whose connections are in the channel.
type arrivals chan net.Conn

func (a arrivals) Accept() (net.Conn, error) { return <-a, nil }
func (arrivals) Close() error                { return nil }
func (arrivals) Addr() net.Addr              { return &net.TCPAddr{} }

// A connection that arrives as the root ends keeps no seat, of which the process has a limited number.
func TestConnectionComesAsTheRootEnds(t *testing.T) {
	conn, other := net.Pipe()
	defer other.Close()
	come := make(arrivals, 1)
	come <- conn
	h := &host{settings: &Settings{}, listener: come, unproven: proof.NewRoom(1), phase: over}
	h.accept()
	require.Nil(t, h.unproven.Ended(conn), "it has a seat")
}

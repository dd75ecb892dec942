package pmi

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/shortage"
)

// newJob returns a server and its clients, each over a socket pair as a process has it.
func newJob(t *testing.T, size int, events Events) (*Server, []*Client) {
	t.Helper()
	s := NewServer(size, events)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	clients := make([]*Client, size)
	for rank := range size {
		file, environment, err := s.Child(rank, 3)
		require.NoError(t, err)
		require.Equal(t, []string{"PMI_FD=3", fmt.Sprint("PMI_RANK=", rank), fmt.Sprint("PMI_SIZE=", size)}, environment)
		conn, err := net.FileConn(file)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		clients[rank], err = New(conn, rank, size)
		require.NoError(t, err)
		t.Cleanup(func() { _ = clients[rank].Close() })
	}
	return s, clients
}

// together calls do for all clients at once.
func together(t *testing.T, clients []*Client, do func(c *Client) error) {
	t.Helper()
	var all sync.WaitGroup
	errs := make([]error, len(clients))
	for i, c := range clients {
		all.Go(func() { errs[i] = do(c) })
	}
	all.Wait()
	for i, err := range errs {
		require.NoError(t, err, "rank %d", i)
	}
}

// TestJob makes ranks exchange values of all lengths, twice.
func TestJob(t *testing.T) {
	for _, size := range []int{1, 2, 5, 64} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			_, clients := newJob(t, size, Events{Gone: func(rank int) { t.Errorf("rank %d is said to be gone", rank) }})
			lengths := []int{1, 10, maxPart - 2, maxPart, maxPart + 1, 2 * maxPart, 5000}
			if size <= 2 {
				lengths = append(lengths, MaxValue)
			}
			value := func(rank, length int) string { return strings.Repeat(string(rune('a'+rank%26)), length) }
			together(t, clients, func(c *Client) error {
				for round := range 2 {
					key := func(rank, length int) string { return fmt.Sprintf("%d-%d-%d", round, rank, length) }
					for _, length := range lengths {
						if err := c.Put(key(c.Rank(), length), value(c.Rank(), length)); err != nil {
							return err
						}
					}
					if err := c.Barrier(t.Context()); err != nil {
						return err
					}
					for _, length := range lengths {
						other := (c.Rank() + 1) % c.Size()
						got, err := c.Get(key(other, length))
						if err != nil {
							return err
						}
						if got != value(other, length) {
							return fmt.Errorf("value of %d bytes came as %d", length, len(got))
						}
					}
				}
				if err := c.Barrier(t.Context()); err != nil {
					return err
				}
				return c.Finalize()
			})
		})
	}
}

// A value is visible after the next barrier and not before. This holds for the longest value of the longest key, too.
func TestVisibility(t *testing.T) {
	key, long := strings.Repeat("k", MaxKey), strings.Repeat("v", MaxValue)
	_, clients := newJob(t, 2, Events{})
	require.NoError(t, clients[0].Put(key, long))
	for _, c := range clients {
		_, err := c.Get(key)
		require.ErrorIs(t, err, ErrNotFound)
	}
	together(t, clients, func(c *Client) error { return c.Barrier(t.Context()) })
	for _, c := range clients {
		value, err := c.Get(key)
		require.NoError(t, err)
		require.Equal(t, long, value)
	}
}

// A rank that dies or finalizes ends the barriers of the others.
func TestEnds(t *testing.T) {
	for _, end := range []struct {
		name string
		do   func(c *Client) error
		gone []int
		says string
	}{
		{"closed", func(c *Client) error { return c.Close() }, []int{1}, "barrier: rank 1 has ended"},
		{"finalized", func(c *Client) error { return c.Finalize() }, nil, "barrier: rank 1 has finalized"},
	} {
		for _, when := range []string{"before", "meanwhile"} {
			t.Run(end.name+" "+when, func(t *testing.T) {
				gone := make(chan int, 3)
				s, clients := newJob(t, 3, Events{Gone: func(rank int) { gone <- rank }})
				if when == "before" {
					require.NoError(t, end.do(clients[1]))
				}
				errs := make(chan error, 2)
				for _, rank := range []int{0, 2} {
					go func() { errs <- clients[rank].Barrier(t.Context()) }()
				}
				if when == "meanwhile" {
					inside := func() int {
						s.mu.Lock()
						defer s.mu.Unlock()
						return len(s.job(0).inside)
					}
					await.True(t, "two ranks to be inside", func() bool { return inside() == 2 })
					require.NoError(t, end.do(clients[1]))
				}
				for range 2 {
					err := <-errs
					require.ErrorIs(t, err, ErrRejected)
					require.ErrorContains(t, err, end.says)
				}
				for _, rank := range end.gone {
					require.Equal(t, rank, <-gone)
				}
			})
		}
	}
}

// A rank that ends before it begins the protocol ends the barrier of the other.
func TestEndsBeforeItBegins(t *testing.T) {
	s := NewServer(2, Events{Gone: func(rank int) { t.Errorf("rank %d, which never began, is said to be gone", rank) }})
	first, _, err := s.Child(0, 3)
	require.NoError(t, err)
	conn, err := net.FileConn(first)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	c, err := New(conn, 0, 2)
	require.NoError(t, err)
	second, _, err := s.Child(1, 3)
	require.NoError(t, err)
	waits := make(chan error, 1)
	go func() { waits <- c.Barrier(t.Context()) }()
	require.NoError(t, second.Close())
	err = <-waits
	require.ErrorIs(t, err, ErrRejected)
	require.ErrorContains(t, err, "barrier: rank 1 has ended before it joined")
	require.NoError(t, c.Finalize())
	require.NoError(t, s.Close())
}

// Ranks that have finalized run another job on the same connections. Values of the earlier job are not there, and
// barriers belong to one job. A rank that does not begin the new job ends it for the others.
func TestAnotherJob(t *testing.T) {
	gone := make(chan int, 3)
	_, clients := newJob(t, 3, Events{Gone: func(rank int) { gone <- rank }})
	for round := range 3 {
		key, value := func(round int) string { return fmt.Sprint("key-", round) }, fmt.Sprint("value-", round)
		together(t, clients, func(c *Client) error {
			if c.rank == 0 {
				if err := c.Put(key(round), value); err != nil {
					return err
				}
			}
			if err := c.Barrier(t.Context()); err != nil {
				return err
			}
			if found, err := c.Get(key(round)); err != nil || found != value {
				return fmt.Errorf("%q in place of %q: %w", found, value, err)
			}
			if _, err := c.Get(key(round - 1)); !errors.Is(err, ErrNotFound) {
				return fmt.Errorf("a key of the job before gives %v, want %v", err, ErrNotFound)
			}
			c.kept = true
			if err := c.Finalize(); err != nil {
				return err
			}
			_, err := c.again()
			return err
		})
		// A rank that has begun the next job does not meet ranks that are still in the last one.
		require.NoError(t, clients[0].Finalize())
		_, err := clients[0].again()
		require.NoError(t, err)
		entered := make(chan error, 1)
		go func() { entered <- clients[0].Barrier(t.Context()) }()
		for _, c := range clients[1:] {
			err := c.Barrier(t.Context())
			require.ErrorIs(t, err, ErrRejected)
			require.ErrorContains(t, err, "rank 0 has finalized")
			require.NoError(t, c.Finalize())
			_, err = c.again()
			require.NoError(t, err)
		}
		together(t, clients[1:], func(c *Client) error { return c.Barrier(t.Context()) })
		require.NoError(t, <-entered)
		together(t, clients, func(c *Client) error {
			if err := c.Finalize(); err != nil {
				return err
			}
			_, err := c.again()
			return err
		})
	}
	require.NoError(t, clients[1].Finalize())
	require.NoError(t, clients[1].Close())
	err := clients[2].Barrier(t.Context())
	require.ErrorContains(t, err, "rank 1 has finalized")
	require.NoError(t, clients[2].Finalize())
	_, err = clients[2].again()
	require.NoError(t, err)
	err = clients[2].Barrier(t.Context())
	require.ErrorContains(t, err, "rank 1 has ended before it joined")
	require.Empty(t, gone)
}

// A server keeps nothing of a job that all ranks have finalized, even while their connections are open.
func TestNothingIsLeftOfAJob(t *testing.T) {
	s, clients := newJob(t, 2, Events{})
	for range 3 {
		together(t, clients, func(c *Client) error {
			c.kept = true
			if err := c.Put(fmt.Sprint(c.rank), "value"); err != nil {
				return err
			}
			if err := c.Barrier(t.Context()); err != nil {
				return err
			}
			return c.Finalize()
		})
		s.mu.Lock()
		jobs, connections, inJob := len(s.jobs), len(s.open), 0
		for c := range s.open {
			if c.job != nil {
				inJob++
			}
		}
		s.mu.Unlock()
		require.Equal(t, []int{0, 2, 0}, []int{jobs, connections, inJob}, "jobs, connections, and those that hold a job")
		together(t, clients, func(c *Client) error {
			_, err := c.again()
			return err
		})
	}
}

// A rank that does not read its responses delays no other rank.
func TestDeafRank(t *testing.T) {
	s := NewServer(2, Events{})
	deaf, far := net.Pipe()
	s.Serve(far, 1)
	listening, other := net.Pipe()
	s.Serve(other, 0)
	c, err := New(listening, 0, 2)
	require.NoError(t, err)
	_, err = deaf.Write([]byte("cmd=init\n"))
	require.NoError(t, err)
	_, err = deaf.Read(make([]byte, 100))
	require.NoError(t, err)
	_, err = deaf.Write([]byte("cmd=barrier_in\n"))
	require.NoError(t, err)
	require.NoError(t, c.Barrier(t.Context()))
	require.NoError(t, c.Put("key", "value"))
	require.NoError(t, c.Finalize())
	require.NoError(t, deaf.Close())
	require.NoError(t, s.Close())
}

// An abort is reported once.
func TestAbort(t *testing.T) {
	type wish struct{ rank, status int }
	wishes := make(chan wish, 2)
	_, clients := newJob(t, 2, Events{Abort: func(rank, status int) { wishes <- wish{rank, status} }})
	require.NoError(t, clients[1].Abort(42))
	require.NoError(t, clients[1].Abort(43))
	require.NoError(t, clients[1].Finalize())
	require.Equal(t, wish{1, 42}, <-wishes)
	require.Empty(t, wishes)
}

// A Server reports which rank a rank blames, including itself, that it could not join, and that it takes the blame
// back. It does so even while the rank waits in a barrier. It rejects a blame of a rank that does not exist.
func TestBlame(t *testing.T) {
	type blame struct {
		rank, blamed int
		left         bool
	}
	blames := make(chan blame, 4)
	unjoined := make(chan int, 1)
	s, clients := newJob(t, 3, Events{
		Blame:     func(rank, blamed int, left bool) { blames <- blame{rank, blamed, left} },
		NotJoined: func(rank int) { unjoined <- rank },
	})
	inside := make(chan error, 1)
	go func() { inside <- clients[1].Barrier(t.Context()) }()
	await.True(t, "a rank to be inside", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.job(0).inside) == 1
	})
	for _, b := range []blame{{1, 2, true}, {1, 0, false}, {1, 1, false}, {1, NoRank, false}} {
		require.NoError(t, clients[1].Blame(b.blamed, b.left))
		require.Equal(t, b, await.Receive(t, "a blame", blames))
	}
	require.Empty(t, unjoined)
	require.NoError(t, clients[1].NotJoined(2))
	require.Equal(t, 1, await.Receive(t, "a rank that could not join", unjoined))
	require.Equal(t, blame{1, 2, false}, await.Receive(t, "its blame", blames))
	for rank, blamed := range map[int]int{0: 3, 2: -2} {
		require.NoError(t, clients[rank].Blame(blamed, false))
		_, err := clients[rank].Get("anything")
		require.Error(t, err)
	}
	require.ErrorIs(t, <-inside, ErrRejected)
	require.NoError(t, s.Close())
	require.Empty(t, blames)
}

// A blame that arrives after the rank has finalized its job does not keep the rank from another job, and does not count
// there.
func TestLateBlame(t *testing.T) {
	blames := make(chan int, 3)
	s := NewServer(2, Events{Blame: func(_, blamed int, _ bool) { blames <- blamed }})
	near, far := net.Pipe()
	s.Serve(far, 0)
	const begin = "cmd=init pmi_version=1 pmi_subversion=1"
	responses := bufio.NewScanner(near)
	for _, line := range []string{begin, "cmd=finalize", "cmd=rma_blame rank=1 left=false", begin, "cmd=rma_blame rank=1 left=true", "cmd=finalize"} {
		_, err := fmt.Fprintln(near, line)
		require.NoError(t, err)
		if !strings.Contains(line, "blame") {
			require.True(t, responses.Scan(), line)
		}
	}
	require.NoError(t, near.Close())
	require.NoError(t, s.Close())
	close(blames)
	var all []int
	for blamed := range blames {
		all = append(all, blamed)
	}
	require.Equal(t, []int{1, NoRank, 1}, all)
}

func TestServerEnds(t *testing.T) {
	s, clients := newJob(t, 2, Events{})
	errs := make(chan error, 1)
	go func() { errs <- clients[0].Barrier(t.Context()) }()
	await.True(t, "a rank to be inside", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.job(0).inside) == 1
	})
	require.NoError(t, s.Close())
	require.Error(t, <-errs)
	require.Error(t, clients[1].Put("a", "b"))
}

func TestChildOfNoRank(t *testing.T) {
	s := NewServer(2, Events{})
	_, _, err := s.Child(2, 3)
	require.ErrorIs(t, err, ErrArgument)
	require.ErrorContains(t, err, "rank 2, allowed are 0 to 1")
	require.NoError(t, s.Close())
}

// TestServerDialogue has the requests of MPICH's client, and some wrong ones.
func TestServerDialogue(t *testing.T) {
	const hello = "cmd=init pmi_version=1 pmi_subversion=1"
	for _, test := range []struct {
		name string
		says []string
		want []string
	}{
		{"MPICH", []string{
			hello, "cmd=get_maxes", "cmd=get_appnum", "cmd=get_my_kvsname", "cmd=get_universe_size",
			"cmd=get kvsname=kvs key=PMI_process_mapping", "cmd=barrier_in", "cmd=put kvsname=kvs key=P0-businesscard value=description#node$port#1$", "cmd=barrier_in",
			"cmd=get kvsname=kvs key=P0-businesscard", "cmd=get kvsname=kvs key=P1-businesscard",
		}, []string{
			"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0 rma_blame=3", "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024", "cmd=appnum appnum=0",
			"cmd=my_kvsname kvsname=kvs", "cmd=universe_size size=1", "cmd=get_result rc=0 msg=success value=(vector,(0,1,1))", "cmd=barrier_out rc=0",
			"cmd=put_result rc=0 msg=success", "cmd=barrier_out rc=0", "cmd=get_result rc=0 msg=success value=description#node$port#1$",
			"cmd=get_result rc=-1 msg=key_not_found value=unknown", "cmd=finalize_ack",
		}},
		{"no beginning", []string{"cmd=get_maxes"}, nil},
		{"no command", []string{hello, "maxes=1"}, []string{"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0 rma_blame=3"}},
		{"an unknown command", []string{hello, "cmd=spawn nprocs=3"}, []string{"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0 rma_blame=3"}},
		{"another space", []string{hello, "cmd=put kvsname=x key=a value=b", "cmd=get kvsname=x key=a"}, []string{
			"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0 rma_blame=3", "cmd=put_result rc=-1 msg=rejected", "cmd=get_result rc=-1 msg=key_not_found value=unknown", "cmd=finalize_ack",
		}},
		{"a long key", []string{hello, "cmd=put kvsname=kvs value=b key=" + strings.Repeat("k", longestKey+1)}, []string{
			"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0 rma_blame=3", "cmd=put_result rc=-1 msg=rejected", "cmd=finalize_ack",
		}},
	} {
		t.Run(test.name, func(t *testing.T) { require.Equal(t, test.want, converse(t, test.says...)) })
	}
}

// The number of values that a rank may put is bounded.
func TestTooManyPuts(t *testing.T) {
	_, clients := newJob(t, 1, Events{})
	for i := range MaxValues {
		require.NoError(t, clients[0].Put(fmt.Sprint("key", i), "v"))
	}
	require.ErrorIs(t, clients[0].Put("one-more", "v"), ErrRejected)
}

// TestNothingIsLeft counts goroutines and descriptors.
func TestNothingIsLeft(t *testing.T) {
	once := func() {
		s := NewServer(3, Events{})
		for rank := range 3 {
			file, _, err := s.Child(rank, 3)
			require.NoError(t, err)
			conn, err := net.FileConn(file)
			require.NoError(t, err)
			require.NoError(t, file.Close())
			c, err := New(conn, rank, 3)
			require.NoError(t, err)
			require.NoError(t, c.Close())
		}
		require.NoError(t, s.Close())
	}
	once()
	files, goroutines := shortage.OpenDescriptors(t), runtime.NumGoroutine()
	for range 20 {
		once()
	}
	// A goroutine that has returned still counts for a moment.
	await.True(t, fmt.Sprintf("no more than %d files and %d goroutines", files, goroutines), func() bool {
		return shortage.OpenDescriptors(t) <= files && runtime.NumGoroutine() <= goroutines
	})
}

package root

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/proof"
)

// Ranks with different settings of their job all get the error at once, even a rank that calls only afterwards.
func TestDisagreementEndsTheJob(t *testing.T) {
	for _, c := range []struct {
		name  string
		stray func(s *Settings)
		says  string
	}{
		{"smaller", func(s *Settings) { s.Size = 3 }, "rank 2 has RMA_SIZE=3, rank 0 has 5 (called from 127."},
		{"larger", func(s *Settings) { s.Size = 6 }, "rank 2 has RMA_SIZE=6, rank 0 has 5 (called from 127."},
		{"other terms", func(s *Settings) { s.Terms = "version 1;RMA_DEVICE=tcp" }, "rank 2 has RMA_DEVICE=tcp, rank 0 RMA_DEVICE=shm (called from 127."},
		{"no terms", func(s *Settings) { s.Terms = "" }, "rank 2 has nothing of that, rank 0 version 1 (called from 127."},
		{"another version", func(s *Settings) { s.Terms = "version 2;more" }, "rank 2 has version 2, rank 0 version 1 (called from 127."},
		{"fewer terms", func(s *Settings) { s.Terms = "version 1" }, "rank 2 has nothing of that, rank 0 RMA_DEVICE=shm (called from 127."},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := vacant(t)
			ended := make(chan error, 5)
			join := func(rank int, change func(s *Settings)) {
				s := rankOf(root, rank, 5)
				s.Terms = "version 1;RMA_DEVICE=shm"
				change(s)
				go func() {
					_, err := Join(t.Context(), s, ample)
					ended <- err
				}()
			}
			told := func(count int) {
				for range count {
					err := <-ended
					require.ErrorIs(t, err, ErrDisagreement)
					require.ErrorContains(t, err, c.says)
				}
			}
			same := func(*Settings) {}
			join(1, same)
			join(2, c.stray)
			join(3, same)
			join(4, same)
			join(0, same)
			told(5)
		})
	}
}

// A root whose ranks disagree waits until the others know, but not without limit.
func TestDisagreementWithOneWhoIsLate(t *testing.T) {
	t.Parallel()
	h := formingHost(t, 4)
	seated := claimed(t, h, claim{rank: 1, size: 4})
	await.True(t, "rank 1 is there", func() bool { return h.seated() == 1 })
	for _, conn := range []net.Conn{claimed(t, h, claim{rank: 2, size: 5}), seated} {
		v, err := readVerdict(conn)
		require.NoError(t, err)
		require.Equal(t, disagreement, v.outcome)
	}
	// Rank 3 agrees, but its job has ended.
	v, err := readVerdict(claimed(t, h, claim{rank: 3, size: 4}))
	require.NoError(t, err)
	require.ErrorIs(t, v.err(), ErrDisagreement)
	require.ErrorContains(t, v.err(), "rank 2 has RMA_SIZE=5, rank 0 has 4")
	<-h.allInformed
	require.ErrorIs(t, h.form(t.Context()), ErrDisagreement)
	require.ErrorIs(t, h.giveUp(errors.New("late")), ErrDisagreement)

	h = formingHost(t, 4)
	_, err = readVerdict(claimed(t, h, claim{rank: 2, size: 5}))
	require.NoError(t, err)
	// Ranks 1 and 3 never call.
	require.ErrorIs(t, h.form(t.Context()), ErrDisagreement)
}

// A caller without the key cannot end a job, whatever it sends.
func TestStrangersCannotDisagree(t *testing.T) {
	t.Parallel()
	h := formingHost(t, 3)
	stranger := &Settings{Root: h.listener.Addr().String(), Rank: 1, Size: 9, Key: []byte("another key of sixteen bytes"), Terms: "has something else"}
	_, err := Join(t.Context(), stranger, ample)
	require.ErrorIs(t, err, proof.ErrKey)
	conn, err := net.Dial("tcp", stranger.Root)
	require.NoError(t, err)
	defer conn.Close()
	// The root may close the connection before all bytes are sent.
	_, _ = conn.Write(claim{rank: 1, size: 9, terms: "has something else"}.encode())
	_ = conn.(*net.TCPConn).CloseWrite()
	await.True(t, "both are rejected", func() bool { n, _ := h.rejected(); return n == 2 })
	var parts []part
	for rank := 1; rank < 3; rank++ {
		parts = append(parts, part{rankOf(stranger.Root, rank, 3), ample, func(m *Member) error { return m.Finalize() }})
	}
	require.NoError(t, errors.Join(play(t, parts...)...))
}

// A late caller cannot end a job that has begun.
func TestDisagreementComesTooLate(t *testing.T) {
	members := joined(t, 2, ample)
	for _, c := range []claim{{rank: 1, size: 3}, {rank: 1, size: 2, terms: "has other terms"}} {
		v, err := readVerdict(claimed(t, members[0].host, c))
		require.NoError(t, err)
		require.ErrorIs(t, v.err(), ErrClaim)
		require.ErrorContains(t, v.err(), "and the job has begun")
	}
	require.NoError(t, members[1].Finalize())
	require.NoError(t, members[0].Finalize())
}

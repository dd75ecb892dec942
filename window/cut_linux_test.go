package window_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/nettest"
	"github.com/onesided/rma/internal/tlstest"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// certificateVariable has the certificate of a rank and its key, which signs itself and
// so is what those of the others are checked with. Without it the rank has no TLS.
const certificateVariable = "RMA_WINDOWTEST_CERTIFICATE"

// certificate is one for all hosts of a network, in PEM.
func certificate(t *testing.T, network *nettest.Network, hosts int) string {
	t.Helper()
	var addresses []string
	for host := range hosts {
		addresses = append(addresses, network.Address(host).String())
	}
	return tlstest.PEM(t, addresses...)
}

// encrypting are the options of a rank by its environment. Its silence is the default: a short one would shorten what a
// handshake may take, and a peer that ends handshakes is called several times, with rests of up to 2.3 seconds together.
func encrypting() ([]world.Option, error) {
	text := os.Getenv(certificateVariable)
	if text == "" {
		return nil, nil
	}
	config, err := tlstest.FromPEM(text)
	if err != nil {
		return nil, err
	}
	return []world.Option{world.WithTLS(config)}, nil
}

// encrypted has every rank write to, add to and read from all others.
var encrypted = jobtest.RegisterWith("encrypted", encrypting, scripted(func(s *script) {
	const each = 10_000
	n, me := s.World.Size(), s.World.Rank()
	win := allocate[int64](s, n*each+1)
	for target := range n {
		s.Check(target == me || s.World.Route(target) == "tcp", "rank %d is reached by %q", target, s.World.Route(target))
	}
	s.OK(win.Fence(s.Ctx, window.NoPrecede))
	for target := range n {
		s.OK(win.Put(pattern(me, target, each), target, me*each))
		s.OK(win.Accumulate(window.Sum, []int64{1}, target, n*each))
	}
	s.OK(win.Fence(s.Ctx, window.NoSucceed))
	s.Check(win.Local()[n*each] == int64(n), "sum is %d", win.Local()[n*each])
	for from := range n {
		equal(s, "block", win.Local()[from*each:(from+1)*each], pattern(from, me, each))
	}
	got := make([]int64, each)
	for target := range n {
		s.OK(win.Lock(s.Ctx, window.Shared, target))
		s.OK(win.Get(got, target, me*each))
		s.OK(win.Unlock(s.Ctx, target))
		equal(s, "block that was read", got, pattern(me, target, each))
	}
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(win.Close())
}))

// startEncrypted starts a rank on each host, with the certificates that it is given.
func startEncrypted(t *testing.T, network *nettest.Network, n int, body string, certificates func(rank int) string) *jobtest.Job {
	t.Helper()
	return jobtest.StartOn(t, n, body,
		func(rank int) []string {
			return []string{"RMA_DEVICE=", "RMA_HOST=", "RMA_ADDRESS=", certificateVariable + "=" + certificates(rank)}
		},
		func(rank int, program string) *exec.Cmd { return network.Command(rank, program) })
}

// The same operations run encrypted between hosts.
func TestEncryptedAcrossHosts(t *testing.T) {
	const hosts = 3
	network := nettest.New(t, hosts)
	common := certificate(t, network, hosts)
	for rank, err := range startEncrypted(t, network, hosts, encrypted, func(int) string { return common }).Wait() {
		require.NoError(t, err, "rank %d", rank)
	}
}

// shunned makes ranks that encrypt otherwise than the others meet them.
var shunned = jobtest.RegisterWith("shunned", encrypting, scripted(func(s *script) {
	err := s.World.Barrier(s.Ctx)
	var lost *world.PeerError
	s.Check(errors.As(err, &lost), "error is %v, want a *world.PeerError", err)
	s.Check((lost.Rank == victim) != (s.World.Rank() == victim), "rank %d is said to have failed: %v", lost.Rank, err)
	// Who ends would be a failure for the others to name.
	s.OK(jobtest.Hold("shunned"))
	s.OK(err)
}))

// A rank with another certificate, or without TLS, connects to no other rank. Both sides return the reason.
func TestEncryptedOtherwise(t *testing.T) {
	t.Parallel()
	const hosts = 3
	network := nettest.New(t, hosts)
	common, other := certificate(t, network, hosts), certificate(t, network, hosts)
	for _, c := range []struct {
		name, odd, ours, theirs string
		begins                  bool
	}{
		{"another certificate", other, "certificate signed by unknown authority", "certificate signed by unknown authority", true},
		{"no TLS", "", "has no WithTLS, this rank WithTLS", "has WithTLS, this rank no WithTLS", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			job := startEncrypted(t, network, hosts, shunned, func(rank int) string {
				if rank == victim {
					return c.odd
				}
				return common
			})
			for rank := 0; c.begins && rank < hosts; rank++ {
				job.Await(rank, "shunned")
			}
			for rank := 0; c.begins && rank < hosts; rank++ {
				job.Release(rank)
			}
			for rank, err := range job.Wait() {
				text := c.ours
				if rank == victim {
					text = c.theirs
				}
				require.ErrorContains(t, err, text, "rank %d", rank)
			}
		})
	}
}

// reset has all connections of the victim reset while both ranks write to each other.
var reset = registerImpatient("reset", func(s *script) {
	const count = 1 << 16
	me := s.World.Rank()
	other := 1 - me
	win := allocate[int64](s, count)
	strike := func() error {
		return errors.Join(win.Put(pattern(me, other, count), other, 0), win.Flush(s.Ctx, other))
	}
	s.OK(win.LockAll(s.Ctx))
	s.OK(strike())
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(jobtest.Hold("ready"))
	done := make(chan error, 1)
	if me == victim {
		go func() { done <- jobtest.ResetConnections() }()
	} else {
		done <- nil
	}
	var err error
	for err == nil {
		err = strike()
	}
	s.OK(<-done)
	s.Lost(err, other)
	// There are two connections. A side that finds one reset gives up the other. The victim's own system may have
	// forgotten the peer of the connection.
	given := strings.Contains(err.Error(), "the peer has taken this side for dead")
	s.Check(given || errors.Is(err, syscall.ECONNRESET) || me == victim && errors.Is(err, syscall.ENOTCONN), "rank %d is told %v", me, err)
	s.Lost(win.UnlockAll(s.Ctx), other)
	s.OK(jobtest.Hold("reset"))
	s.OK(win.Close())
})

// A connection that is reset in the middle of traffic is the end of each rank for the
// other: the system says so, no silence is waited for.
func TestReset(t *testing.T) {
	const n = 2
	job := jobtest.StartWith(t, n, reset, func(rank int) []string {
		return append(overTCP(rank), silenceVariable+"="+never.String())
	})
	for _, point := range []string{"ready", "reset"} {
		for rank := range n {
			job.Await(rank, point)
		}
		for rank := range n {
			job.Release(rank)
		}
	}
	for rank, err := range job.Wait() {
		require.NoError(t, err, "rank %d", rank)
	}
}

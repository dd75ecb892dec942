package job_test

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/nettest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

var meetEverywhere = register("meet by every way", func(s *script) {
	s.OK(world.Run(s.Ctx, 2, scripted(func(s *script) { s.OK(s.World.Barrier(s.Ctx)) }), world.WithDevice("tcp"), world.WithAddress("")))
	l, err := world.Listen(s.Ctx, "[::1]:0", world.WithoutKey())
	s.OK(err)
	served := make(chan error, 1)
	go func() {
		session, err := job.ListenerOf(l).Accept(s.Ctx)
		if err == nil {
			err = session.Begin()
			<-session.Left()
			err = errors.Join(err, session.World().Close())
		}
		served <- err
	}()
	w, err := world.Dial(s.Ctx, l.Addr().String(), world.WithoutKey())
	s.OK(err)
	s.OK(w.Close())
	s.OK(<-served)
	s.OK(l.Close())
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(s.World.Close())
})

// Ranks on hosts that have IPv6 only reach each other, on one host and on several, with a manager and without. In a plain run the
// devices take turns.
func TestIPv6Only(t *testing.T) {
	t.Setenv("RMA_KEY_FILE", "")
	network := nettest.New(t, 2)
	network.OnlyIPv6()
	devices := []string{"", "tcp"}
	for host := range 2 {
		for _, k := range testsize.Turns(host, len(devices), 1) {
			variables := func(rank int) []string { return []string{"RMA_DEVICE=" + devices[k]} }
			jobtest.StartOnNetwork(t, network, 2, meetEverywhere, variables, func(rank int) int { return rank * host }).Succeeds()
		}
	}
	variables := func(int) []string { return []string{"RMA_DEVICE=tcp", "RMA_ADDRESS=[::1]"} }
	jobtest.StartOnNetwork(t, network, 2, meetEverywhere, variables, func(int) int { return 0 }).Succeeds()
	for host, root := range map[int]string{0: "[::1]:7000", 1: net.JoinHostPort(network.Address6(0).String(), "7000")} {
		environment := rootJob(t, root, 2)
		for _, k := range testsize.Turns(host, len(devices), 1) {
			variables := func(rank int) []string { return append(environment(rank), "RMA_DEVICE="+devices[k]) }
			errs := jobtest.StartOnNetwork(t, network, 2, meet, variables, func(rank int) int { return rank * host }).Wait()
			require.NoError(t, errors.Join(errs...))
		}
	}
}

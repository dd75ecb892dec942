package rails_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/rails"
	"github.com/onesided/rma/verbs/shm"
	"github.com/onesided/rma/verbs/sim"
)

// addressed is a device with another address.
type addressed struct {
	verbs.Device
	address string
}

func (a addressed) Address() string { return a.address }

func TestNewRefuses(t *testing.T) {
	s := simtest.New(t, "ndr-2024", 1)
	card := s.Open()
	memory, err := shm.NewFabric().Open()
	require.NoError(t, err)
	defer func() { require.NoError(t, memory.Close()) }()
	nine := make([]verbs.Device, 9)
	for what, c := range map[string]struct {
		without rails.Optimization
		devices []verbs.Device
		says    string
	}{
		"none":                     {0, nil, "New of 0 devices; allowed are 2 to 8"},
		"one":                      {0, []verbs.Device{card}, "New of 1 device;"},
		"nine":                     {0, nine, "New of 9 devices"},
		"an unknown optimization":  {2, []verbs.Device{card, card.OpenRail()}, "without is 0x2, known are 0x1"},
		"two kinds of time":        {0, []verbs.Device{card, memory}, "not both in virtual time"},
		"channels in virtual time": {0, []verbs.Device{card, s.Open()}, "open it with OpenRail"},
		"long addresses":           {0, []verbs.Device{card, addressed{card.OpenRail(), strings.Repeat("a", 250)}}, "allowed are 256"},
		"a strange address":        {0, []verbs.Device{card, addressed{card.OpenRail(), "a|b"}}, `has a "|" in it`},
	} {
		_, err := rails.NewWithout(c.without, c.devices...)
		require.ErrorContains(t, err, c.says, what)
	}
}

// Devices of different numbers of rails do not connect, and the error says why.
func TestOtherNumberOfRails(t *testing.T) {
	s := simtest.New(t, "ndr-2024", 1)
	two, three := open(t, s, 2), open(t, s, 3)
	n := newNode(t, two, 8)
	_, err := two.Connect(three.Address(), nil, n.config())
	require.ErrorContains(t, err, "has 3 rails, this one 2")
	// A device that claims two rails is detected by its hello.
	_, err = three.Connect(two.Address(), nil, newNode(t, three, 8).config())
	require.ErrorContains(t, err, "has 2 rails, this one 3")
}

// A connection that comes over one rail only is rejected in time, and few are kept so long.
func TestHalfConnections(t *testing.T) {
	s := simtest.New(t, "ndr-2024", 1)
	s.Go("both", func() { halfConnections(t, s) })
	require.NoError(t, s.Run())
}

func halfConnections(t *testing.T, s *sim.Simulator) {
	far := open(t, s, 2)
	maker := s.Open()
	queue, err := maker.CreateCompletionQueue(1)
	require.NoError(t, err)
	config := verbs.QueuePairConfig{SendQueue: queue, ReceiveQueue: queue}
	_, first, _ := strings.Cut(far.Address(), "|")
	first, _, _ = strings.Cut(first, "|")
	var pairs []verbs.QueuePair
	knock := func(hello string) {
		pair, err := maker.Connect(first, []byte(hello), config)
		require.NoError(t, err)
		pairs = append(pairs, pair)
	}
	hello := func(i int) string { return "\x01\x02\x00" + fmt.Sprintf("%016d", i) }
	sleep := func(d time.Duration) {
		ticket := far.Channel().Prepare()
		far.Channel().Sleep(ticket, d)
		far.Channel().Finish()
	}
	poll := func() {
		for range 3 {
			sleep(time.Millisecond)
			require.Zero(t, far.PollConnections(make([]verbs.ConnectionRequest, 4)))
		}
	}
	rejected := func(i int, says string) {
		sleep(time.Millisecond)
		require.Equal(t, verbs.StateError, pairs[i].State())
		require.ErrorIs(t, pairs[i].Err(), verbs.ErrRejected)
		require.ErrorContains(t, pairs[i].Err(), says)
	}
	for i, c := range []struct{ hello, says string }{
		{"", "a hello of 0 bytes"},
		{"\x02\x02\x00" + strings.Repeat("t", 16), "speaks version 2"},
		{"\x01\x03\x00" + strings.Repeat("t", 16), "the peer has 3 rails, this side 2"},
		{"\x01\x02\x01" + strings.Repeat("t", 16), "takes rail 0 for its rail 1"},
	} {
		knock(c.hello)
		poll()
		rejected(i, c.says)
	}
	pairs = nil
	knock(hello(0))
	poll()
	knock(hello(0))
	poll()
	require.Equal(t, verbs.StateConnecting, pairs[0].State())
	rejected(1, "was made over rail 0 before")
	for i := 1; i <= 1024; i++ {
		knock(hello(i))
	}
	poll()
	rejected(0, "1024 connections wait for other rails")
	require.Equal(t, verbs.StateConnecting, pairs[2].State())
	sleep(31 * time.Second)
	poll()
	for i := 2; i < len(pairs); i++ {
		rejected(i, "has not come over all rails within 30s")
	}
}

// Posting and polling allocate nothing, whether requests are striped or deferred.
func TestAllocatesNothing(t *testing.T) {
	if testsize.Race {
		t.Skip("skipped: the race detector allocates itself; the run without it looks")
	}
	const size = 1 << 20
	oneSided(t, "ndr-2024", 0, 2, size, func(near, far *node) {
		frames := near.cards[1].Frames()
		requests := []verbs.SendRequest{
			near.request(verbs.OpRDMAWrite, 0, 0, size/2, far, 0),
			near.request(verbs.OpRDMARead, 0, size/2, size/2, far, 0),
			near.request(verbs.OpRDMAWrite, verbs.Inline, 0, 64, far, 0),
			near.request(verbs.OpRDMAWrite, verbs.Signalled, 0, size/2, far, 0),
		}
		round := func() {
			n, err := near.pair.PostSend(requests)
			for near.queue.Poll(near.into[:]) == 0 && n == len(requests) && err == nil {
				ticket := near.Channel().Prepare()
				near.Channel().Sleep(ticket, time.Microsecond)
				near.Channel().Finish()
			}
		}
		for range 10 {
			round()
		}
		require.Zero(t, testing.AllocsPerRun(100, round))
		require.Greater(t, near.cards[1].Frames()-frames, uint64(150), "what went over rail 1")
	})
}

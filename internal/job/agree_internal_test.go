package job

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/bootstrap/root"
	"github.com/onesided/rma/internal/tuning"
	"github.com/onesided/rma/verbs"
)

// Ranks that differ in anything which all must have in common both hear it from each other, with what either has.
func TestDifferentRanks(t *testing.T) {
	s, err := newSettings([]Option{WithDevice("")})
	require.NoError(t, err)
	replaced := func(from, to string) func(text string) string {
		return func(text string) string { return strings.Replace(text, from, to, 1) }
	}
	with := func(options ...Option) func(string) string {
		other, err := newSettings(append([]Option{WithDevice("")}, options...))
		require.NoError(t, err)
		return func(string) string { return string(other.terms(2)) }
	}
	network := func(int) (verbs.Device, error) { return nil, nil }
	cases := []struct {
		change       func(text string) string
		mine, theirs string
	}{
		{replaced(protocol, protocol+"0"), "protocol version " + protocol, "protocol version " + protocol + "0"},
		{replaced(byteOrder(), "middle-endian"), "byte order " + byteOrder(), "byte order middle-endian"},
		{replaced("64 bits", "32 bits"), "word size 64 bits", "word size 32 bits"},
		{replaced("2 ranks", "3 ranks"), "a job of 2 ranks", "a job of 3 ranks"},
		{with(WithDevice("tcp")), "RMA_DEVICE unset (automatic choice)", "RMA_DEVICE=tcp"},
		{with(Tune(func(t *tuning.Tuning) { t.NoStaging = true })), "Tuning.Algorithm=0", "Tuning.Algorithm=0 NoStaging"},
		{with(WithNetwork(network)), "no WithNetwork", "WithNetwork"},
		{with(WithTLS(new(tls.Config))), "no WithTLS", "WithTLS"},
		{with(WithKey(make([]byte, 16))), "no key of its own", "a key with the hash 374708ff"},
		{with(WithAddress("127.0.0.1,127.0.0.1")), "1 address (RMA_ADDRESS)", "2 addresses (RMA_ADDRESS)"},
	}
	require.Len(t, cases, 1+strings.Count(string(s.terms(2)), ";"), "each of the terms is one of the cases")
	for _, c := range cases {
		ranks := [2]introduction{{terms: s.terms(2), cores: 1}, {rank: 1, terms: root.Terms(c.change(string(s.terms(2)))), cores: 1}}
		errs := introduced(t.Context(), ranks, func(text string) string { return text })
		set := ""
		if strings.Contains(c.theirs, "key") {
			set = " (RMA_KEY_FILE or WithKey)"
		}
		require.ErrorIs(t, errs[0], ErrMismatch)
		require.EqualError(t, errs[0], fmt.Sprintf("ranks disagree: rank 1 has %s, this rank %s; all ranks must have the same%s", c.theirs, c.mine, set))
		require.ErrorIs(t, errs[1], ErrMismatch)
		require.EqualError(t, errs[1], fmt.Sprintf("ranks disagree: rank 0 has %s, this rank %s; all ranks must have the same%s", c.mine, c.theirs, set))
	}
	ranks := [2]introduction{{terms: s.terms(2), cores: 1}, {rank: 1, terms: s.terms(2), cores: 1}}
	require.Equal(t, [2]error{}, introduced(t.Context(), ranks, func(text string) string { return text }))
}

// introduced has two ranks introduce themselves to each other, of which the second speaks as another version does.
func introduced(ctx context.Context, ranks [2]introduction, speak func(text string) string) (errs [2]error) {
	exchange := newLocalExchange(2)
	var both sync.WaitGroup
	for rank := range ranks {
		both.Go(func() {
			_, errs[rank] = introductions(ctx, func(ctx context.Context, mine string) ([]string, error) {
				if rank == 1 {
					mine = speak(mine)
				}
				return exchange.of(rank)(ctx, mine)
			}, 2, ranks[rank])
		})
	}
	both.Wait()
	return errs
}

// What a rank of another version says is not read, whatever it is.
func TestIntroducedInAnotherVersion(t *testing.T) {
	ranks := [2]introduction{{cores: 1}, {rank: 1, cores: 1}}
	for _, text := range []string{"rma8;1;2;;linux/1;net:[1];linux/1/net:[1]/pid:[1]/;1;false;0;false;false;false;;x;2", protocol + "0", protocol + "0;?"} {
		version, _, _ := strings.Cut(text, ";")
		errs := introduced(t.Context(), ranks, func(string) string { return text })
		require.ErrorIs(t, errs[0], ErrMismatch)
		require.ErrorContains(t, errs[0], fmt.Sprintf("rank 1 has protocol version %s, this rank protocol version %s", version, protocol))
	}
}

// The terms of no job are longer than its root takes.
func TestTermsFitTheRoot(t *testing.T) {
	s := Settings{device: "", key: make([]byte, 16), tuning: tuning.Tuning{Algorithm: tuning.Long, NoPipes: true, NoCells: true, NoStaging: true}}
	for range 8 {
		s.listen = append(s.listen, netip.IPv6Unspecified())
	}
	set := root.Settings{Root: "localhost:1", Size: MaxRanks, Key: s.key, Terms: s.terms(MaxRanks)}
	_, err := root.Join(t.Context(), &set, 0)
	require.ErrorContains(t, err, "start timeout")
}

// Ranks reach each other over equally many RDMA cards, unless all of them share memory.
func TestUnlikeNumbersOfCards(t *testing.T) {
	on := func(host string, cards int) introduction { return introduction{host: host, rdma: cards} }
	require.NoError(t, agreeOnCards([]introduction{on("a", 1), on("a", 2)}, 0))
	require.NoError(t, agreeOnCards([]introduction{on("a", 2), on("b", 2)}, 0))
	ranks := []introduction{on("a", 1), on("b", 2)}
	for me, says := range []string{"rank 1 has 2 RDMA cards (RMA_IBV_DEVICE), this rank 1 RDMA card (RMA_IBV_DEVICE)", "rank 0 has 1 RDMA card (RMA_IBV_DEVICE), this rank 2 RDMA cards"} {
		require.ErrorContains(t, agreeOnCards(ranks, me), says)
	}
	require.Error(t, agreeOnCards([]introduction{on("", 1), on("", 2)}, 0))
}

// Ranks of one machine that need cards only because a limit has them share no memory name that limit. On others it is not the reason.
func TestUnlikeNumbersOfCardsOfOneHost(t *testing.T) {
	on := func(machine string, cards int) introduction {
		return introduction{machine: machine, host: machine, rdma: cards}
	}
	for name, c := range map[string]struct {
		ranks  []introduction
		limits bool
	}{
		"one machine":  {[]introduction{on("a", 1), on("a", 2)}, true},
		"two machines": {[]introduction{on("a", 1), on("a", 2), on("b", 1)}, false},
	} {
		limitSharing(c.ranks, "", 1)
		for me := range 2 {
			err := agreeOnCards(c.ranks, me)
			require.ErrorIs(t, err, ErrMismatch, name)
			require.ErrorContains(t, err, "1 RDMA card", name)
			require.Equal(t, c.limits, strings.Contains(err.Error(), "share memory among 2 ranks: rank 0 needs"), "%s: %v", name, err)
			require.Equal(t, c.limits, strings.Contains(err.Error(), "raise RLIMIT_NOFILE (ulimit -n)"), "%s: %v", name, err)
		}
	}
}

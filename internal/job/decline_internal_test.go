package job

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/bootstrap/root"
	"github.com/onesided/rma/verbs"
)

// The reason why a rank declines arrives whole, or is cut to the length that an Exchange takes.
func TestDeclinedTexts(t *testing.T) {
	for _, why := range []string{"", "x", "no device", "a;b=c%d+e\nf", "λόγος", strings.Repeat("y", 880), strings.Repeat("y", 5000), strings.Repeat("ό z", 5000)} {
		text := declinedText(errors.New(why))
		require.LessOrEqual(t, len(text), 900)
		for i := range len(text) {
			require.True(t, text[i] > ' ' && text[i] <= '~', "%q", text)
		}
		err := declined([]string{"rma1;0;", text, "rma1;2;"})
		var peer *PeerError
		require.ErrorAs(t, err, &peer)
		require.Equal(t, 1, peer.Rank)
		told := strings.TrimPrefix(peer.Cause.Error(), "it cannot join: ")
		require.True(t, strings.HasPrefix(why, told))
		require.True(t, len(told) == len(why) || len(text) > 890)
	}
	require.NoError(t, declined([]string{"rma1;0;", "shm;x;0;0;0;", ""}))
	require.ErrorIs(t, declined([]string{"declined;%zz"}), errContact)
}

func TestApart(t *testing.T) {
	at := func(machine, net, pid, name string) introduction {
		return introduction{machine: machine, net: net, host: strings.Join([]string{machine, net, pid, name}, "/")}
	}
	here := at("linux/1", "net:[1]", "pid:[1]", "")
	for _, c := range []struct {
		other introduction
		want  string
	}{
		{at("linux/2", "net:[1]", "pid:[1]", ""), "it is on another machine"},
		{at("linux/1", "net:[1]", "pid:[1]", "b/c"), `its RMA_HOST is "b/c", this rank's unset (automatic choice)`},
		{at("linux/1", "net:[2]", "pid:[1]", ""), "it is in another network name space"},
		{at("linux/1", "net:[1]", "pid:[2]", ""), "it is in another name space of processes"},
		{introduction{machine: "linux/1", net: "net:[1]"}, "memory is not shared with it"},
	} {
		require.Equal(t, c.want, here.apart(&c.other))
	}
	named := at("linux/1", "net:[1]", "pid:[1]", "a")
	require.Equal(t, `its RMA_HOST is unset (automatic choice), this rank's "a"`, named.apart(&here))
}

// The log says once why ranks of one machine share no memory: they are in different name spaces, or the host has a limit. It says
// nothing if the user has given the hosts different names.
func TestUnsharedIsToldOnce(t *testing.T) {
	at := func(pid, name string) introduction {
		return introduction{machine: "linux/1", net: "net:[1]", host: strings.Join([]string{"linux/1", "net:[1]", pid, name}, "/")}
	}
	for name, test := range map[string]struct {
		ranks []introduction
		says  string
	}{
		"together":           {[]introduction{at("pid:[1]", ""), at("pid:[1]", "")}, ""},
		"apart":              {[]introduction{at("pid:[1]", ""), at("pid:[2]", ""), at("pid:[2]", ""), at("pid:[3]", "")}, "rank=0 why=\"rank 1: it is in another name space of processes\""},
		"apart, named alike": {[]introduction{at("pid:[1]", "a"), at("pid:[1]", "a"), at("pid:[2]", "a")}, "rank=0 why=\"rank 2: it is in"},
		"named":              {[]introduction{at("pid:[1]", "a"), at("pid:[2]", "b")}, ""},
		"named, and apart":   {[]introduction{at("pid:[1]", "a"), at("pid:[2]", "b"), at("pid:[3]", "b")}, "rank=1 why=\"rank 2: it is in"},
		"another machine":    {[]introduction{at("pid:[1]", ""), {machine: "linux/2", host: "linux/2/net:[1]/pid:[2]/"}}, ""},
		"over the network":   {[]introduction{{machine: "linux/1"}, {machine: "linux/1"}}, ""},
	} {
		var log recorder
		for rank := range test.ranks {
			test.ranks[rank].rank = rank
			test.ranks[rank].logUnshared(log.logger(), test.ranks)
		}
		if warnings := log.lines("level=WARN"); test.says == "" {
			require.Empty(t, warnings, name)
		} else {
			require.Len(t, warnings, 1, name)
			require.Contains(t, warnings[0], test.says, name)
		}
	}
	if runtime.GOOS != "linux" {
		return
	}
	// No system call fails in a process that is user 65534 of a user name space.
	limited := introduction{machine: "linux/1", unshared: &verbs.CapabilityError{Device: "shm", Capability: "tell users apart", Reason: "of the name space"}}
	ranks := []introduction{limited, limited}
	var log recorder
	for rank := range ranks {
		ranks[rank].rank = rank
		ranks[rank].logUnshared(log.logger(), ranks)
	}
	require.Len(t, log.lines("level=WARN"), 1)
}

// The root follows the options of the World.
func TestRootFollowsTheOptions(t *testing.T) {
	config, logger := &tls.Config{}, slog.New(slog.DiscardHandler)
	for stall, notice := range map[time.Duration]time.Duration{0: -1, time.Second: time.Second, time.Minute: longestNotice} {
		s, err := newSettings([]Option{WithTLS(config), WithLogger(logger), WithPeerTimeout(3 * time.Second), WithDevice("tcp"), WithStall(stall)})
		require.NoError(t, err)
		lastJob.Store(7)
		var r root.Settings
		s.tell(&r)
		require.Equal(t, root.Settings{TLS: config, Logger: logger, After: 7, Silence: 3 * time.Second, Notice: notice, Terms: s.terms(0)}, r)
	}
}

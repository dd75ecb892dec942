package job

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/sim"
)

var errBoom = errors.New("boom")

// endWithin ends a rank as departFailed does, with a limit that only ends a hang.
func endWithin(t *testing.T, w *World, why error) {
	t.Helper()
	sent := w.sendReason(why, await.Limit)
	require.Empty(t, sent.links)
	require.Zero(t, sent.left.Load())
	require.NoError(t, errors.Join(w.departShrunk(), w.depart()))
	sent.running.Wait()
}

// A rank that fails tells the ranks of its host why, once and in the words of its body, whether they have met it or not.
func TestFailedRankSaysWhy(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: ranks of several devices share memory on Linux only")
	}
	for _, met := range []bool{true, false} {
		t.Run(fmt.Sprintf("met %v", met), func(t *testing.T) {
			worlds := meetApart(t, "here", "here", "here")
			if met {
				require.NoError(t, errors.Join(each(worlds, func(w *World) error { return w.Barrier(t.Context()) })...))
			}
			endWithin(t, worlds[2], errBoom)
			for rank, err := range each(worlds[:2], func(w *World) error { return w.Barrier(t.Context()) }) {
				require.EqualError(t, err, "world: Barrier: rank 2 has failed: boom", "rank %d", rank)
			}
			for _, w := range worlds[:2] {
				require.NoError(t, w.depart())
			}
		})
	}
}

// each makes a call on all Worlds at once.
func each(worlds []*World, call func(w *World) error) []error {
	errs := make([]error, len(worlds))
	var calls sync.WaitGroup
	for i, w := range worlds {
		calls.Go(func() { errs[i] = call(w) })
	}
	calls.Wait()
	return errs
}

// A rank that fails in a World that Shrink has made says why in that World, whatever becomes of the earlier ones. It also says so in
// the World of the job, in which another rank has failed first.
func TestFailedRankSaysWhyAfterShrink(t *testing.T) {
	forms := map[string]func(t *testing.T) []*World{
		"mapped": func(t *testing.T) []*World { return localJob(t, 4) },
		"apart":  func(t *testing.T) []*World { return localJob(t, 4, apart()...) },
	}
	if runtime.GOOS == "linux" {
		forms["processes"] = func(t *testing.T) []*World { return meetApart(t, "here", "here", "here", "here") }
	}
	shrink := func(t *testing.T, worlds []*World) []*World {
		small := make([]*World, len(worlds))
		errs := each(worlds, func(w *World) (err error) {
			small[w.rank], err = w.Shrink(t.Context())
			return errors.Join(err, small[w.rank].Barrier(t.Context()))
		})
		require.NoError(t, errors.Join(errs...))
		return small
	}
	for name, make := range forms {
		t.Run(name, func(t *testing.T) {
			worlds := make(t)
			require.NoError(t, errors.Join(each(worlds, func(w *World) error { return w.Barrier(t.Context()) })...))
			endWithin(t, worlds[3], errors.New("the first"))
			small := shrink(t, worlds[:3])
			endWithin(t, worlds[2], errors.New("the second"))
			smaller := shrink(t, small[:2])
			require.NoError(t, errors.Join(each(small[:2], (*World).Close)...))
			endWithin(t, worlds[1], errBoom)
			require.True(t, smaller[1].departing.Load(), "it departs, though the World between is closed")
			require.EqualError(t, smaller[0].Barrier(t.Context()), "world: Barrier: rank 1 has failed: boom")
			// Rank 0 may have heard of these from another rank first. The text says so then.
			require.ErrorContains(t, small[0].Failure(2), "world: rank 2 has failed: the second")
			require.ErrorContains(t, worlds[0].Failure(3), "world: rank 3 has failed: the first")
			require.NoError(t, errors.Join(worlds[0].departShrunk(), worlds[0].depart()))
		})
	}
}

// localJob makes the Worlds of ranks that are goroutines of this process.
func localJob(t *testing.T, n int, options ...Option) []*World {
	t.Helper()
	s, err := newSettings(options)
	require.NoError(t, err)
	worlds, err := localWorlds(t.Context(), n, s)
	require.NoError(t, err)
	return worlds
}

// A rank that fails ends its links only when its reason has been received over them, although nothing else makes progress for it.
func TestFailedRankSaysWhyOverLinks(t *testing.T) {
	for name, options := range map[string][]Option{"tcp": {WithDevice("tcp")}, "fabric": apart()} {
		t.Run(name, func(t *testing.T) {
			worlds := meetWith(t, options, "one", "two")
			connect(t, worlds[0], 1)
			worlds[1].engine.Close()
			endWithin(t, worlds[1], errBoom)
			require.EqualError(t, worlds[0].Barrier(t.Context()), "world: Barrier: rank 1 has failed: boom")
			require.NoError(t, worlds[0].depart())
		})
	}
}

// In virtual time a rank says why it has failed in the time of its card.
func TestFailedRankSaysWhySimulated(t *testing.T) {
	p, err := sim.ByName("ndr-2024")
	require.NoError(t, err)
	s, err := sim.New(p, 1)
	require.NoError(t, err)
	var heard error
	require.ErrorIs(t, Simulate(t.Context(), s, 2, func(ctx context.Context, w *World) error {
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.rank == 1 {
			return errBoom
		}
		heard = w.Barrier(ctx)
		return nil
	}), errBoom)
	require.EqualError(t, heard, "world: Barrier: rank 1 has failed: boom")
}

// A rank that fails waits no longer than the limit for a peer that takes nothing, even while other ranks keep it busy.
func TestFailedRankWaitsNotForever(t *testing.T) {
	for _, busy := range []bool{false, true} {
		t.Run(fmt.Sprintf("busy %v", busy), func(t *testing.T) {
			var called atomic.Bool
			worlds := quiet(t, over(func(_ int, d verbs.Device) verbs.Device { return &calledDevice{d, &called} })...)
			// Rank 0 makes no progress, and so accepts no connection.
			_, err := worlds[1].Link(0)
			require.NoError(t, err)
			called.Store(busy)
			require.Len(t, worlds[1].sendReason(errBoom, time.Millisecond).links, 1)
		})
	}
}

// A calledDevice has another caller whenever it is asked, while called is true.
type calledDevice struct {
	verbs.Device
	called *atomic.Bool
}

func (d *calledDevice) PollConnections(into []verbs.ConnectionRequest) int {
	if d.called.Load() {
		into[0] = &caller{}
		return 1
	}
	return d.Device.PollConnections(into)
}

// Other ranks end their connections with a rank that has failed. It finds them gone and records that, but tells no rank of it.
func TestFailedRankTellsOfNoOther(t *testing.T) {
	worlds := meetWith(t, apart(), "one", "two", "three")
	connect(t, worlds[0], 1)
	worlds[0].sendReason(errBoom, await.Limit)
	worlds[0].roster.fail(2, verbs.ErrPeerGone)
	require.ErrorIs(t, worlds[0].Failure(2), verbs.ErrPeerGone)
	require.False(t, worlds[0].news.some.Load())
	first, err := worlds[0].FirstFailure()
	require.Zero(t, first, "%v", err)
	for _, w := range worlds {
		require.NoError(t, w.depart())
	}
}

// A rank that ends because another has failed gives no reason of its own: the reason of the first counts.
func TestFollowerSaysNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: ranks of several devices share memory on Linux only")
	}
	worlds := meetApart(t, "here", "here", "here")
	worlds[1].roster.fail(0, errors.New("this test says so"))
	endWithin(t, worlds[1], errBoom)
	flags := worlds[2].obituaries
	require.Zero(t, flags[len(flags)-reasonWords].Load())
	for _, rank := range []int{0, 2} {
		require.NoError(t, worlds[rank].depart())
	}
}

// A heldMapper signals each request for the memory of a rank, and forwards the request when it is released.
type heldMapper struct {
	verbs.Mapper
	asked, released chan struct{}
}

func (m *heldMapper) Neighbor(address string) (verbs.Neighbor, error) {
	m.asked <- struct{}{}
	<-m.released
	return m.Mapper.Neighbor(address)
}

// A rank that fails tells no rank of its host before the flags of all are set: the first that hears of it may end, and be found gone by
// another. That one then finds the failure in its own block, although it has not been woken for that.
func TestFailedRankTellsAllAtOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: ranks of several devices share memory on Linux only")
	}
	worlds := meetApart(t, "here", "here", "here")
	_, err := worlds[2].Neighbor(0)
	require.NoError(t, err)
	held := &heldMapper{worlds[2].home.mapper, make(chan struct{}, 1), make(chan struct{})}
	worlds[2].home.mapper = held
	sent := make(chan *reasonSending, 1)
	go func() { sent <- worlds[2].sendReason(errBoom, await.Limit) }()
	await.Receive(t, "rank 1 to be asked", held.asked)
	require.Zero(t, worlds[0].obituaries[0].Load())
	close(held.released)
	require.Zero(t, await.Receive(t, "the reason to be sent", sent).left.Load())
	for _, w := range worlds[:2] {
		require.EqualValues(t, 1, w.obituaries[0].Load())
	}
	worlds[1].failed(0, verbs.ErrPeerGone)
	require.ErrorContains(t, worlds[1].Failure(0), ", after rank 2 had failed: boom")
	for _, w := range worlds {
		require.NoError(t, w.depart())
	}
}

// reasons are texts, and what is shown of them.
var reasons = map[string]struct{ text, shown string }{
	"plain":             {"boom", "boom"},
	"panic":             {"panic: boom\ngoroutine 1", "panic: boom"},
	"carriage return":   {"boom\r\nmore", "boom"},
	"begins empty":      {"\n\n boom\n", "boom"},
	"spaces":            {"a\tb\rc\u2028d", "a b c d"},
	"escapes":           {"\x1b[31mred\a", "?[31mred?"},
	"other direction":   {"a\u202eb", "a?b"},
	"no UTF-8":          {"a\xff\xfeb\xc3", "a?b?"},
	"empty":             {"", noReason},
	"nothing of it":     {" \n\t", noReason},
	"long":              {strings.Repeat("ä", maxReason), strings.Repeat("ä", maxReason/2)},
	"cut within a rune": {"a" + strings.Repeat("ä", maxReason), "a" + strings.Repeat("ä", maxReason/2-1)},
}

// A reason is shown as one clean line of bounded length, whatever was written. Nothing that fits is left out.
func TestCleanReason(t *testing.T) {
	for name, c := range reasons {
		shown := cleanReason(c.text)
		require.Equal(t, c.shown, shown, name)
		require.Equal(t, shown, cleanReason(shown), name)
	}
}

func FuzzReason(f *testing.F) {
	for _, c := range reasons {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		allocs.AtMost(t, 1<<10+8*len(text), func() { _ = cleanReason(text) })
		shown := cleanReason(text)
		require.NotEmpty(t, shown)
		require.LessOrEqual(t, len(shown), maxReason)
		require.True(t, utf8.ValidString(shown))
		require.Negative(t, strings.IndexFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) }), "%q", shown)
		require.Equal(t, shown, cleanReason(shown))
	})
}

// What is sent of a failure is the reason alone.
func TestReasonOf(t *testing.T) {
	first := &PeerError{Rank: 1, Cause: &toldError{1, 1, "boom"}}
	for want, cause := range map[string]error{
		"Barrier: no":             errors.New("world: Barrier: no"),
		"told":                    &laterError{&memberError{3, &toldError{2, 0, "told"}}, first},
		"written":                 &reasonError{"written", &toldError{2, 0, "told"}},
		"rank 1 has failed: boom": first,
		"while fetching: rank 1 has failed: boom": &laterError{fmt.Errorf("world: while fetching: %w", first), first},
		noReason: errors.New(""),
	} {
		require.Equal(t, want, reasonOf(cause))
	}
}

// A rank that has failed is not believed that another has, nor who survives: it may have been stopped, and others have ended their
// connections to it meanwhile.
func TestFailedRankIsNotBelieved(t *testing.T) {
	w := quietRanks(t, 3)[0]
	l, err := w.Link(1)
	require.NoError(t, err)
	w.Exclude(func() {
		w.roster.fail(1, errBoom)
		require.NoError(t, l.serve(&Message{Kind: kindFailed, X: 2}, []byte("gone")))
		require.NoError(t, l.serve(&Message{Kind: kindSurvivor}, nil))
		require.NoError(t, l.serve(&Message{Kind: kindSurvivors, X: 1}, nil))
	})
	require.Nil(t, w.shrinking.decided)
	require.ErrorIs(t, w.Failure(1), errBoom)
	require.NoError(t, w.Failure(2))
}

// A reason is clean on both sides of a link, and in a verdict: a sender may be damaged.
func TestReasonOverLink(t *testing.T) {
	for name, c := range reasons {
		t.Run(name, func(t *testing.T) {
			worlds := quiet(t)
			l, err := worlds[0].Link(1)
			require.NoError(t, err)
			worlds[0].Exclude(func() {
				require.NoError(t, l.serve(&Message{Kind: kindFailed, X: 1}, []byte(c.text)))
			})
			require.EqualError(t, worlds[0].Failure(1), "world: rank 1 has failed: "+c.shown)

			worlds = quiet(t)
			worlds[0].ledger.judge(verdict{number: 1, leaver: 1, text: c.text})
			if c.text != "" {
				require.ErrorContains(t, worlds[0].verdict("Barrier", 1), "rank 1 has failed: "+c.shown)
			}
		})
	}
	for name, c := range reasons {
		t.Run("sent, "+name, func(t *testing.T) {
			worlds := quiet(t)
			_, err := worlds[1].Link(0)
			require.NoError(t, err)
			sent := make(chan *reasonSending, 1)
			go func() { sent <- worlds[1].sendReason(errors.New(c.text), await.Limit) }()
			for worlds[0].FailureCount() == 0 {
				worlds[0].Poll()
				runtime.Gosched()
			}
			require.Empty(t, await.Receive(t, "the reason to be sent", sent).links)
			require.EqualError(t, worlds[0].Failure(1), "world: rank 1 has failed: "+c.shown)
		})
	}
}

// A rank whose error has no text has failed, and has not left.
func TestEmptyReason(t *testing.T) {
	w := quiet(t)[0]
	w.roster.fail(1, errors.New(""))
	w.report(1)
	require.EqualError(t, w.verdict("Barrier", 1), "world: Barrier: rank 1 has failed: ")
	v := w.ledger.heard(1)
	require.Equal(t, &verdict{number: 1, leaver: 1, text: noReason}, v)
}

// A rank looks in its block for the reason of a failure, however it has heard of that. From a damaged block it takes what can be
// shown, or nothing.
func TestReasonInBlock(t *testing.T) {
	const size, me, failed = 3, 0, 2
	found := map[string]error{
		"the end of its device": verbs.ErrPeerGone,
		"a flag":                errObituary,
		"a link":                &toldError{failed, 1, "told"},
		"a verdict":             errors.New("told"),
	}
	for how, cause := range found {
		for name, c := range map[string]struct {
			first uint64
			text  string
			want  string
		}{
			"written":          {failed + 1, "boom", "boom"},
			"another rank's":   {me + 1, "boom", ""},
			"unfinished":       {failed + 1 | reasonUnfinished, "boom", ""},
			"none":             {0, "boom", ""},
			"empty":            {failed + 1, "", ""},
			"of several lines": {failed + 1, "boom\nbang", "boom"},
			"escapes":          {failed + 1, "\x1b[2Jboom", "?[2Jboom"},
			"no UTF-8":         {failed + 1, "boom\xc3", "boom?"},
			"full":             {failed + 1, strings.Repeat("b", 2*maxReason), strings.Repeat("b", maxReason)},
		} {
			w := flagged(me, size)
			reason := w.obituaries[len(w.obituaries)-reasonWords:]
			storeText(reason[1:], c.text)
			reason[0].Store(c.first)
			w.roster.fail(failed, cause)
			want := "world: rank 2 has failed: " + c.want
			if c.want == "" {
				want = (&PeerError{Rank: failed, Cause: cause}).Error()
			}
			require.EqualError(t, w.Failure(failed), want, "%s, %s", how, name)
			require.ErrorIs(t, w.Failure(failed), cause)
		}
	}
	w := flagged(me, size)
	reason := w.obituaries[len(w.obituaries)-reasonWords:]
	storeText(reason[1:], "not its own words")
	reason[0].Store(me + 1)
	w.roster.fail(me, errBoom)
	require.EqualError(t, w.Failure(me), "world: rank 0 has failed: boom")
}

// flagged returns a World that has what it needs to read its failure flags, and nothing else.
func flagged(rank, size int) *World {
	w := &World{rank: rank, size: size, roster: newRoster(size), obituaries: make([]atomic.Uint64, obituaryWords(size))}
	w.roster.reason = w.reason
	return w
}

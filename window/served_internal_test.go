package window

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/world"
)

func FuzzRequest(f *testing.F) {
	f.Add(encodeRequest(reduce.KindOf[uint64](), "words"))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 'a'})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		allocs.AtMost(t, 1<<10+len(text), func() { _, _, _ = parseRequest(text) })
		kind, name, err := parseRequest(text)
		if err == nil && (name == "" || kind >= reduce.Kinds || string(encodeRequest(kind, name)) != string(text)) {
			t.Fatalf("kind %d, name %q of %x", kind, name, text)
		}
	})
}

func FuzzOffer(f *testing.F) {
	c := &core{hints: settings{SingleElement: true, Unordered: true, Slots: 3}}
	f.Add(c.offer(&description{bytes: 64, alignment: 4096, data: job.Places{{}, verbs.RemoteRegion{Address: 1, Length: 64, RKey: 2}}}))
	f.Add(c.offer(&description{bytes: 1 << 63, alignment: 3}))
	all := promises(1<<len(promiseNames) - 1).settings()
	all.ReadOnly = true
	f.Add((&core{hints: all}).offer(&description{}))
	f.Fuzz(func(t *testing.T, text []byte) {
		allocs.AtMost(t, 2<<10, func() { _, _, _ = parseOffer(text) })
		s, d, err := parseOffer(text)
		if err != nil {
			return
		}
		if s.Slots > maxNotifications {
			t.Fatalf("%d slots", s.Slots)
		}
		if d.check(reduce.KindOf[int64]()) == nil && d.bytes%8 != 0 {
			t.Fatalf("%d bytes", d.bytes)
		}
		if again := (&core{hints: s}).offer(&d); string(again) != string(text) {
			t.Fatalf("%x is offered as %x", text, again)
		}
	})
}

// A client that breaks every rule is rejected, changes nothing that it has no lock for as ranks see it, and leaves
// nothing open.
func TestHostileClient(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := world.Listen(ctx, "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	require.NoError(t, world.Run(ctx, 1, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 4, Seats(1))
		if err != nil {
			return err
		}
		var serving sync.WaitGroup
		serving.Go(func() { err = Serve(ctx, l, win.As("words")) })
		visitHostile(ctx, t, l.Addr().String())
		// Its seat, and the lock that it had taken, are free.
		c, failed := world.Dial(ctx, l.Addr().String(), world.WithoutKey())
		require.NoError(t, failed)
		var again *Window[int64]
		for again == nil {
			again, failed = Attach[int64](ctx, c, "words")
		}
		require.NoError(t, errors.Join(failed, again.Lock(ctx, Exclusive, 0), again.Put([]int64{1, 2, 3, 4}, 0, 0), again.Unlock(ctx, 0)))
		require.NoError(t, errors.Join(again.Close(), c.Close(), l.Close()))
		serving.Wait()
		require.Equal(t, []int64{1, 2, 3, 4}, win.Local())
		return errors.Join(err, win.Close())
	}))
}

// A client that breaks every rule changes nothing of a window that clients only read. Every write is rejected, and the
// reads beside it get their results.
func TestHostileReader(t *testing.T) {
	const word = 0x0707_0707_0707_0707
	swap := run(aggregate.Swap, 0, kindOfInt64, 8, 0, 16)
	swap[len(swap)-1] = 8
	writes := map[string][]byte{
		"put of a word":             run(aggregate.Put, 0, 0, 8, 8, 8),
		"put of 16 bytes":           run(aggregate.Put, 0, 0, 16, 8, 16),
		"accumulate":                run(aggregate.Accumulate, Sum, kindOfInt64, 8, 8, 8),
		"accumulate of 2 elements":  run(aggregate.Accumulate, Sum, kindOfInt64, 16, 8, 16),
		"fetch":                     run(aggregate.Fetch, Sum, kindOfInt64, 8, 8, 8),
		"compare-and-swap of equal": swap,
		"notification":              run(aggregate.Notify, 0, 0, 0, 3, 0),
	}
	read := run(aggregate.Get, 0, 0, 8, 16, 0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := world.Listen(ctx, "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	require.NoError(t, world.Run(ctx, 1, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 4, Seats(1))
		if err != nil {
			return err
		}
		before := []int64{word, 1, 2, 3}
		copy(win.Local(), before)
		served := make(chan error)
		go func() { served <- Serve(ctx, l, win.As("words").ReadOnly()) }()
		there := attachTo(ctx, t, l)
		number := there.core.number
		p, err := there.core.peer(0)
		require.NoError(t, err)
		control := &win.core.own.control
		unchanged := func(what string) {
			t.Helper()
			require.Equal(t, before, win.Local(), what)
			for slot := range defaultNotifications {
				require.Zero(t, control.slot(slot).Load(), what)
			}
			require.Zero(t, control.exclusive().Load(), what)
		}
		refused := func(what string) {
			t.Helper()
			var refusal *job.RejectionError
			require.ErrorAs(t, p.link.Flush(ctx, number), &refusal, what)
			require.ErrorContains(t, refusal, ErrReadOnly.Error(), what)
			unchanged(what)
		}
		for name, write := range writes {
			packet := slices.Concat(write, read)
			n, err := aggregate.Check(packet)
			require.NoError(t, err)
			answer := make([]byte, n)
			require.NoError(t, p.link.Ask(ctx, &job.Message{Kind: messagePacket, Service: number}, packet, answer))
			refused(name)
			require.Equal(t, append(make([]byte, n-8), 2, 0, 0, 0, 0, 0, 0, 0), answer, name)
			require.NoError(t, p.link.Tell(&job.Message{Kind: messageLock, Service: number, A: uint8(Shared), B: lockOnce}, write))
			refused(name + " under a lock")
		}
		require.NoError(t, p.link.Tell(&job.Message{Kind: messageLock, Service: number, A: uint8(Exclusive)}, nil))
		refused("exclusive lock")
		// By RDMA there is no other answer than the end.
		eight := []byte{9, 9, 9, 9, 9, 9, 9, 9}
		require.Error(t, errors.Join(p.link.Write(ctx, eight, p.deferred.region, 8), p.link.Flush(ctx)))
		unchanged("write by RDMA")
		_ = detach(there)
		return errors.Join(l.Close(), <-served, win.Close())
	}))
}

func visitHostile(ctx context.Context, t *testing.T, address string) {
	w, err := world.Dial(ctx, address, world.WithoutKey())
	require.NoError(t, err)
	win, err := Attach[int64](ctx, w, "words")
	require.NoError(t, err)
	link, err := job.Of(w).Link(0)
	require.NoError(t, err)
	refused := func(service uint32, m job.Message, payload []byte) {
		t.Helper()
		m.Service = service
		require.NoError(t, link.Tell(&m, payload))
		var refusal *job.RejectionError
		require.ErrorAs(t, link.Flush(ctx, service), &refusal, "%+v", m)
	}
	for _, m := range []job.Message{
		{Kind: messageWord, A: postAt, X: 1}, {Kind: messageComplete, Z: 1}, {Kind: messageMark}, {Kind: messageGranted},
		{Kind: messageAttach}, {Kind: messageLock, A: 9}, {Kind: messageUnlock, A: uint8(Exclusive)},
	} {
		refused(win.core.number, m, nil)
	}
	v := win.core.visited
	for _, m := range []job.Message{{Kind: messageDetach}, {Kind: messageDetach, X: 1 << 40}, {Kind: messageAttached}, {Kind: messageLock}} {
		refused(v.number, m, nil)
	}
	refused(v.number, job.Message{Kind: messageAttach, X: 9}, make([]byte, requestHead+mostName+1))
	// Windows that are none, and requests that are none, are answered, which the visitor refuses: it has not asked.
	require.NoError(t, link.Tell(&job.Message{Kind: messageDetach, Service: v.number, X: 77}, nil))
	for _, text := range [][]byte{nil, {1}, binary.LittleEndian.AppendUint32(nil, 1<<31), []byte("\xff\xff\xff\xffwords")} {
		a := new(inquiry)
		v.mu.Lock()
		v.tickets++
		v.asked[v.tickets] = a
		ticket := v.tickets
		v.mu.Unlock()
		require.NoError(t, link.Tell(&job.Message{Kind: messageAttach, Service: v.number, X: ticket}, text))
		link.Post()
		for !a.answered.Load() {
			job.Of(w).Poll()
		}
		require.Zero(t, a.number)
	}
	// It leaves with the exclusive lock.
	require.NoError(t, win.Lock(ctx, Exclusive, 0))
	require.NoError(t, win.Flush(ctx, 0))
	require.NoError(t, w.Close())
}

// What the server says of a window that it does not give may be anything.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		refusal uint8
		detail  uint64
		text    string
		is      error
		says    string
	}{
		{refusedName, 0, "", ErrNotServed, "no such window is served under that name"},
		{refusedKind, uint64(reduce.KindOf[int64]()), "", ErrNotServed, "no such window of float32: its elements are of int64"},
		{refusedKind, 1 << 40, "a\x1b[2J", nil, `world: rank 0 rejected a message: "a\x1b[2J"`},
		{refusedSeats, 3, "", ErrNoSeat, "all seats are taken: there are 3 (option Seats)"},
		{refusedSeats, 1 << 60, "", nil, `world: rank 0 rejected a message: ""`},
		{refusedClosed, 0, "", ErrNotServed, "no such window: it is closed"},
		{99, 0, strings.Repeat("\x00", 9999), nil, `world: rank 0 rejected a message: "` + strings.Repeat(`\x00`, 512) + `"`},
	} {
		a := inquiry{refusal: c.refusal, detail: c.detail, text: []byte(c.text)}
		err := a.refused(reduce.KindOf[float32]())
		require.EqualError(t, err, c.says)
		if c.is != nil {
			require.ErrorIs(t, err, c.is)
		}
	}
}

// An Attach that goes on with a request which was refused in the meantime asks again.
func TestAttachRefusedMeanwhile(t *testing.T) {
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 4, Seats(1))
		if err != nil {
			return err
		}
		served := make(chan error)
		go func() { served <- Serve(ctx, l, win.As("words")) }()
		c, err := world.Dial(ctx, l.Addr().String(), world.WithoutKey())
		require.NoError(t, err)
		v := job.Of(c).Attached(visitorKey{}, func() any { return newVisitor(jobOf(c)) }).(*visitor)
		a := &inquiry{request: encodeRequest(reduce.KindOf[int64](), "words"), givenUp: true}
		v.asked[77] = a
		attached := make(chan error)
		go func() {
			_, err := Attach[int64](ctx, c, "words")
			attached <- err
		}()
		for goesOn := false; !goesOn; {
			runtime.Gosched()
			v.mu.Lock()
			goesOn = !a.givenUp
			v.mu.Unlock()
		}
		require.NoError(t, v.Serve(nil, &job.Message{Kind: messageAttached, A: refusedSeats, X: 77, Z: 1}, nil))
		require.NoError(t, <-attached)
		return errors.Join(c.Close(), l.Close(), <-served, win.Close())
	}))
}

// A client's seat is free when Close of its World has returned, also where the server takes its time.
func TestSeatFreeAfterClose(t *testing.T) {
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 4, Seats(1))
		if err != nil {
			return err
		}
		served := make(chan error)
		go func() { served <- Serve(ctx, l, win.As("words")) }()
		taken := func() *guest {
			win.core.seats.mu.Lock()
			defer win.core.seats.mu.Unlock()
			return win.core.seats.guests[0]
		}
		for _, closes := range []bool{false, true} {
			c, err := world.Dial(ctx, l.Addr().String(), world.WithoutKey())
			require.NoError(t, err)
			there, err := Attach[int64](ctx, c, "words")
			require.NoError(t, err)
			g := taken()
			require.NotNil(t, g)
			g.mu.Lock()
			waited := make(chan error, 1)
			go func() {
				// It waits for the server.
				waited <- await.UntilParked(ctx, "job.(*World).Close", 1)
				g.mu.Unlock()
			}()
			if closes {
				require.NoError(t, there.Close())
			}
			require.NoError(t, errors.Join(c.Close(), <-waited))
			require.Nil(t, taken())
		}
		return errors.Join(l.Close(), <-served, win.Close())
	}))
}

// A client that has the exclusive word, and waits for holders of shared locks, is not idle; one for which it waits is.
func TestIdleWhileWaiting(t *testing.T) {
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 4, Seats(2))
		if err != nil {
			return err
		}
		// The server's own looks at the sessions have no lock that is waited for for too long.
		server := Server{Limits: Limits{LockTime: -1}}
		served := make(chan error)
		go func() { served <- server.Serve(ctx, l, win.As("words")) }()
		shares, waits := attachTo(ctx, t, l), attachTo(ctx, t, l)
		require.NoError(t, errors.Join(shares.Lock(ctx, Shared, 0), shares.Flush(ctx, 0)))
		locked := make(chan error)
		go func() { locked <- errors.Join(waits.Lock(ctx, Exclusive, 0), waits.Flush(ctx, 0)) }()
		all := server.attendants()
		require.Len(t, all, 2)
		seat := func(i int) Seat { return all[i].show().Seats[0] }
		await.True(t, "the client to wait", func() bool { return seat(1) == Seat{Window: "words", Waits: true} })
		require.NotZero(t, win.core.own.control.exclusive().Load())
		require.Equal(t, Seat{Window: "words", Shared: true, Blocks: true}, seat(0))
		// The server looks now and then.
		require.NoError(t, all[0].exceeded(time.Now()))
		late := time.Now().Add(2 * defaultIdle)
		require.NoError(t, all[1].exceeded(late))
		require.ErrorContains(t, all[0].exceeded(late), "(Limits.IdleTime)")

		require.NoError(t, errors.Join(shares.Unlock(ctx, 0), <-locked))
		await.True(t, "the client to wait no more", func() bool { return seat(1) == Seat{Window: "words", Exclusive: true} })
		require.ErrorContains(t, all[1].exceeded(late), "(Limits.IdleTime)")
		return errors.Join(waits.Unlock(ctx, 0), detach(waits), detach(shares), l.Close(), <-served, win.Close())
	}))
}

// attachTo is the window of a new client.
func attachTo(ctx context.Context, t *testing.T, l *world.Listener) *Window[int64] {
	t.Helper()
	c, err := world.Dial(ctx, l.Addr().String(), world.WithoutKey())
	require.NoError(t, err)
	there, err := Attach[int64](ctx, c, "words")
	require.NoError(t, err)
	return there
}

// detach ends the client that has a window.
func detach(there *Window[int64]) error { return errors.Join(there.Close(), there.World().Close()) }

// A lock for which nothing waits may be held for any time, one for which a client waits may not, and a lock may be waited for
// for any time.
func TestLockNotWaitedFor(t *testing.T) {
	l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	require.NoError(t, world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 4, Seats(3))
		if err != nil {
			return err
		}
		server := Server{Limits: Limits{LockTime: time.Hour, IdleTime: -1}}
		served := make(chan error)
		go func() { served <- server.Serve(ctx, l, win.As("words")) }()
		holds, shares, waits := attachTo(ctx, t, l), attachTo(ctx, t, l), attachTo(ctx, t, l)
		all := server.attendants()
		require.Len(t, all, 3)
		seat := func(i int) Seat { return all[i].show().Seats[0] }
		// The first look that finds a waiter, and one two hours later.
		late := func(i int) error {
			now := time.Now()
			return errors.Join(all[i].exceeded(now), all[i].exceeded(now.Add(2*time.Hour)))
		}
		require.NoError(t, errors.Join(holds.Lock(ctx, Shared, 0), holds.Flush(ctx, 0), shares.Lock(ctx, Shared, 0), shares.Flush(ctx, 0)))
		for i := range 2 {
			require.Equal(t, Seat{Window: "words", Shared: true}, seat(i))
			require.NoError(t, late(i))
		}
		locked := make(chan error)
		go func() { locked <- errors.Join(waits.Lock(ctx, Exclusive, 0), waits.Flush(ctx, 0)) }()
		await.True(t, "the client to wait", func() bool { return seat(2) == Seat{Window: "words", Waits: true} })
		for i := range 2 {
			require.ErrorContains(t, late(i), `a lock of "words" for 1h0m0s while others waited (Limits.LockTime)`)
		}
		require.NoError(t, late(2))
		require.NoError(t, errors.Join(holds.Unlock(ctx, 0), shares.Unlock(ctx, 0), <-locked))
		await.True(t, "the client to wait no more", func() bool { return seat(2) == Seat{Window: "words", Exclusive: true} })
		require.NoError(t, late(2))
		return errors.Join(waits.Unlock(ctx, 0), detach(waits), detach(shares), detach(holds), l.Close(), <-served, win.Close())
	}))
}

// A rank that is gone waits for no lock, whatever it has left in the words of the lock.
func TestGoneRankBlocksNobody(t *testing.T) {
	for name, c := range map[string]struct {
		kind LockKind
		wait func(control *control)
	}{
		"Shared": {Shared, func(control *control) { control.exclusive().Store(lockWordOf(1)) }},
		"Exclusive": {Exclusive, func(control *control) {
			control.waiters().Add(1)
			control.pair(1, waitingAt).Add(1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := world.Listen(t.Context(), "127.0.0.1:0", world.WithoutKey())
			require.NoError(t, err)
			var locked, seen atomic.Bool
			require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
				win, err := Allocate[int64](ctx, w, 4, Seats(1))
				if err != nil {
					return err
				}
				if w.Rank() == 1 {
					err = await.Until(ctx, "the lock to be taken", locked.Load)
					host, failed := win.core.peer(0)
					if err = errors.Join(err, failed); err != nil {
						return err
					}
					c.wait(&host.control)
					return await.Until(ctx, "the client to block this rank", seen.Load)
				}
				server := Server{Limits: Limits{LockTime: -1}}
				served := make(chan error)
				go func() { served <- server.Serve(ctx, l, win.As("words")) }()
				there := attachTo(ctx, t, l)
				require.NoError(t, errors.Join(there.Lock(ctx, c.kind, 0), there.Flush(ctx, 0)))
				blocks := func() bool { return server.Sessions()[0].Seats[0].Blocks }
				require.False(t, blocks())
				locked.Store(true)
				await.True(t, "the client to block rank 1", blocks)
				seen.Store(true)
				await.True(t, "rank 1 to be gone", func() bool { return job.Of(w).Gone(1) })
				require.False(t, blocks())
				return errors.Join(there.Unlock(ctx, 0), detach(there), l.Close(), <-served, win.Close())
			}))
		})
	}
}

// A session is off the list when Evict returns.
func TestEvictedIsNotListed(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := world.Listen(ctx, "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	require.NoError(t, world.Run(ctx, 1, func(ctx context.Context, w *world.World) error {
		win, err := Allocate[int64](ctx, w, 1, Seats(1))
		require.NoError(t, err)
		var server Server
		served := make(chan error, 1)
		go func() { served <- server.Serve(ctx, l, win.As("words")) }()
		client, err := world.Dial(ctx, l.Addr().String(), world.WithoutKey())
		require.NoError(t, err)
		await.True(t, "the session to be listed", func() bool { return len(server.Sessions()) == 1 })
		one := server.attendants()[0]
		// Nobody can take the session off the list, though its World is closed.
		server.mu.Lock()
		one.evict(errors.New("maintenance"))
		await.True(t, "the session's World to be closed", func() bool {
			return errors.Is(one.session.World().Collective(), world.ErrClosed)
		})
		soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond) // expires
		defer cancel()
		select {
		case <-one.ended:
			t.Error("Evict would return while the session is listed")
		case <-soon.Done():
		}
		server.mu.Unlock()
		<-one.ended
		require.Empty(t, server.Sessions())
		_ = client.Close()
		l.Close()
		return errors.Join(<-served, win.Close())
	}))
}

// A client for which there is no place, when too many others are being told so, calls again.
func TestRefusedQuietly(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := world.Listen(ctx, "127.0.0.1:0", world.WithoutKey())
	require.NoError(t, err)
	defer l.Close()
	dialed := make(chan error, 1)
	go func() {
		client, err := world.Dial(ctx, l.Addr().String(), world.WithoutKey())
		if err == nil {
			err = client.Close()
		}
		dialed <- err
	}()
	first, err := job.ListenerOf(l).Accept(ctx)
	require.NoError(t, err)
	var running sync.WaitGroup
	server := Server{refusing: mostRefusing}
	server.begin(ctx, newAttendant(ctx, first, nil, new(Limits)), &running)
	again, err := job.ListenerOf(l).Accept(ctx)
	require.NoError(t, err)
	require.NoError(t, again.Begin())
	<-again.Left()
	require.NoError(t, errors.Join(again.World().Close(), <-dialed))
	running.Wait()
}

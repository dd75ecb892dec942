package job

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/progress"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
)

// A rank that counts itself twice, runs ahead or goes back in a meeting breaks the rules,
// and changes nothing by it.
func TestMeetingOutOfTurn(t *testing.T) {
	arrive := func(number uint64) Message { return Message{Kind: kindArrive, X: number} }
	round := func(number uint64) Message { return Message{Kind: kindRound, X: number} }
	release := func(number uint64) Message { return Message{Kind: kindRelease, X: number} }
	type script struct {
		name string
		// rank is told by the other one of good, and then of what is bad.
		rank int
		good []Message
		bad  Message
	}
	scripts := []script{
		{"arriving twice", 0, []Message{arrive(1)}, arrive(1)},
		{"arriving early", 0, nil, arrive(2)},
		{"arriving before the others", 0, []Message{arrive(1)}, arrive(2)},
		{"arriving at no number", 0, nil, arrive(0)},
		{"arriving by no call", 0, nil, Message{Kind: kindArrive, A: MostCalls, X: 1}},
		{"a round back", 1, []Message{round(1), round(2), round(2)}, round(1)},
		{"a round ahead", 1, []Message{round(1)}, round(3)},
		{"a release back", 1, []Message{release(1), release(2), release(2)}, release(1)},
		{"a release ahead", 1, []Message{release(1)}, release(3)},
	}
	for _, c := range scripts {
		t.Run(c.name, func(t *testing.T) {
			runApart(t, 2, func(_ context.Context, w *World) error {
				if w.rank != c.rank {
					return nil
				}
				m := w.NewMeeting(w.NewNumber(), make([]byte, MeetingBytes), NoTally, nil)
				defer m.Close()
				from := &Link{world: w, rank: 1 - w.rank}
				for i := range c.good {
					if err := m.serve(from, &c.good[i], nil); err != nil {
						return err
					}
				}
				counts := func() [3]uint32 {
					return [3]uint32{m.own.round(0).Load(), m.own.arrived().Load(), m.own.released().Load()}
				}
				before := counts()
				if err := m.serve(from, &c.bad, nil); !errors.Is(err, ErrMessage) {
					return fmt.Errorf("error is %v, want %v", err, ErrMessage)
				}
				if after := counts(); after != before {
					return fmt.Errorf("counts were %v, and are %v", before, after)
				}
				return nil
			})
		})
	}
}

// Who tells that a rank is absent whose part it is not, or that one is which cannot be, breaks the rules.
func TestAbsenceOutOfPlace(t *testing.T) {
	for _, c := range []struct {
		name     string
		cores    int
		from     int
		message  Message
		accepted bool
	}{
		{"of round 1", 4, 1, Message{A: 1, Y: 2}, true},
		{"of another round", 4, 1, Message{A: 0, Y: 2}, false},
		{"of no round", 4, 1, Message{A: 2, Y: 2}, false},
		{"of itself", 4, 1, Message{A: 1, Y: 3}, false},
		{"of no rank", 4, 1, Message{A: 1, Y: 4}, false},
		{"by the parent", 1, 0, Message{Y: 2}, true},
		{"by another", 1, 1, Message{Y: 2}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			setting{c.cores, true}.run(t, 4, func(_ context.Context, w *World, m *Meeting) error {
				if w.rank != 3 {
					return nil
				}
				c.message.Kind = kindAbsent
				if err := m.serve(&Link{world: w, rank: c.from}, &c.message, nil); errors.Is(err, ErrMessage) == c.accepted || err == nil != c.accepted {
					return fmt.Errorf("accepted should be %v, error is %w", c.accepted, err)
				}
				return nil
			})
		})
	}
}

// What a rank that leaves tells of its meetings fits a message, however many they are.
func TestLeavingManyMeetings(t *testing.T) {
	w := quiet(t)[0]
	l, err := w.Link(1)
	require.NoError(t, err)
	most := l.MaxPayload() / countBytes
	for range most + 2 {
		m := w.NewMeeting(w.NewNumber(), make([]byte, MeetingBytes), NoTally, nil)
		defer m.Close()
	}
	require.Len(t, w.comeTo(), most*countBytes)
}

// A rank's flags belong to progress and to those who map them: nobody has a key to them who
// is told of them by messages.
func TestBlockIsNotRemote(t *testing.T) {
	runApart(t, 2, func(_ context.Context, w *World) error {
		if block := w.Place(1-w.rank, &w.job.contacts[1-w.rank].block); block != (verbs.RemoteRegion{}) {
			return fmt.Errorf("the block of rank %d is %+v over the network", 1-w.rank, block)
		}
		return nil
	})
}

// A setting is where ranks meet: which share so many cores, and map each other, or not.
type setting struct {
	cores int
	apart bool
}

func (s setting) String() string { return fmt.Sprintf("%d cores, apart: %v", s.cores, s.apart) }

// sleeping bounds the sleeps of ranks. Those that are never woken hang where that is forever.
func sleeping(limit time.Duration) Option { return func(s *Settings) { s.longestSleep = limit } }

const forever = 2 * await.Limit

// seekingSoon has a wait find out after 5 ms of sleep, half of this, whom it is for in the end (see seek).
var seekingSoon = sleeping(10 * time.Millisecond)

// run runs ranks that have a meeting, and go on only when they are woken.
func (s setting) run(t *testing.T, n int, body func(ctx context.Context, w *World, m *Meeting) error, options ...Option) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(s.cores))
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	blocks := make([][]byte, n)
	for rank := range blocks {
		blocks[rank] = make([]byte, MeetingBytes)
	}
	options = append([]Option{onCores(s.cores), sleeping(forever)}, options...)
	if s.apart {
		options = append(options, apart()...)
	}
	require.NoError(t, Run(ctx, n, func(ctx context.Context, w *World) error {
		if w.rooted != (n > s.cores) || n > 1 && w.Mapped((w.rank+1)%n) == s.apart {
			return errors.New("the ranks meet elsewhere")
		}
		m := w.NewMeeting(w.NewNumber(), blocks[w.rank], NoTally, func(rank int) ([]byte, error) { return blocks[rank], nil })
		defer m.Close()
		for _, meet := range []func() error{func() error { return w.Barrier(ctx) }, func() error { return m.Meet(ctx, "Meet", 0, 1) }} {
			if err := meet(); err != nil {
				return err
			}
		}
		return body(ctx, w, m)
	}, options...))
}

// everySetting is one that so many ranks may meet in, each in its turn.
func everySetting(n int) []setting { return []setting{{1, false}, {n, false}, {1, true}, {n, true}} }

// A company is complete when all have joined it.
type company struct {
	missing  atomic.Int32
	complete chan struct{}
}

func companyOf(n int) *company {
	c := &company{complete: make(chan struct{})}
	c.missing.Store(int32(n))
	return c
}

func (c *company) join() {
	if c.missing.Add(-1) == 0 {
		close(c.complete)
	}
}

// await returns when it is complete, or its time is over.
func (c *company) await(ctx context.Context) {
	select {
	case <-c.complete:
	case <-ctx.Done():
	}
}

// misses is an error unless one says that a rank has left.
func misses(err error, leaver int) error {
	var lost *PeerError
	if !errors.As(err, &lost) || !errors.Is(err, ErrLeft) || lost.Rank != leaver {
		return fmt.Errorf("error is %w, want that rank %d has left", err, leaver)
	}
	return nil
}

// Everybody is woken by what it waits for, however late the last rank comes: a rank that is not sleeps for ever.
func TestLateComerWakesAll(t *testing.T) {
	const n = 5
	for _, in := range everySetting(n) {
		t.Run(in.String(), func(t *testing.T) {
			in.run(t, n, func(ctx context.Context, w *World, m *Meeting) error {
				calls := []func(number uint32) error{
					func(uint32) error { return w.Barrier(ctx) },
					func(number uint32) error { return m.Meet(ctx, "Meet", 0, number) },
					func(uint32) error { return Broadcast(ctx, w, 0, make([]int, 1)) },
					func(uint32) error { return AllReduceOp(ctx, w, make([]int64, 1), make([]int64, 1), Sum) },
				}
				for late := range n {
					for _, call := range calls {
						if w.rank == late {
							time.Sleep(3 * progress.FirstSleep) // computes
						}
						if err := call(uint32(late + 2)); err != nil {
							return err
						}
					}
				}
				return nil
			})
		})
	}
}

// A Meet that is repeated after it has ended tells nobody again: others may have freed their blocks by then.
func TestMeetRepeated(t *testing.T) {
	for _, n := range []int{2, 12} {
		for _, in := range everySetting(n) {
			t.Run(fmt.Sprintf("%d ranks, %v", n, in), func(t *testing.T) {
				in.run(t, n, func(ctx context.Context, w *World, m *Meeting) error {
					err := errors.Join(m.Meet(ctx, "Meet", 0, 2), w.Barrier(ctx))
					for freed := range n {
						if w.rank == freed {
							setFlags(m, 0)
						}
						err = errors.Join(err, w.Barrier(ctx))
						if w.rank != freed {
							err = errors.Join(err, m.Meet(ctx, "Meet", 0, 2))
						}
						if err = errors.Join(err, w.Barrier(ctx)); w.rank == freed {
							err = errors.Join(err, flagsAre0(m))
							setFlags(m, 2)
						}
					}
					return err
				})
			})
		}
	}
}

// A Meet that goes on after it was cut short tells nobody again that it has told before.
func TestMeetCutShort(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	var cut, freed atomic.Bool
	setting{cores: 2}.run(t, 2, func(ctx context.Context, w *World, m *Meeting) error {
		if w.rank == 0 {
			if err := m.Meet(ended, "Meet", 0, 2); !errors.Is(err, context.Canceled) {
				return fmt.Errorf("error is %v, want %w", err, context.Canceled)
			}
			cut.Store(true)
			err := await.Until(ctx, "the block of rank 1 to be free", freed.Load)
			return errors.Join(err, m.Meet(ctx, "Meet", 0, 2), w.Barrier(ctx))
		}
		err := errors.Join(await.Until(ctx, "rank 0 to be cut short", cut.Load), m.Meet(ctx, "Meet", 0, 2))
		setFlags(m, 0)
		freed.Store(true)
		return errors.Join(err, w.Barrier(ctx), flagsAre0(m))
	})
}

// flags are those of a rank's block that others set.
func flags(m *Meeting) []*atomic.Uint32 {
	all := []*atomic.Uint32{m.own.released()}
	for k := range m.said {
		all = append(all, m.own.round(k))
	}
	return all
}

func setFlags(m *Meeting, number uint32) {
	for _, flag := range flags(m) {
		flag.Store(number)
	}
}

func flagsAre0(m *Meeting) error {
	for i, flag := range flags(m) {
		if is := flag.Load(); is != 0 {
			return fmt.Errorf("flag %d of the block of rank %d was set to %d after it was free", i, m.world.rank, is)
		}
	}
	return nil
}

// That a rank has left all hear who wait for it, though nobody else leaves before they have. One may come
// only when all the others have heard, if they see by themselves that it is not that one that they miss.
func TestMeetWithoutLeaver(t *testing.T) {
	type script struct {
		n, leaver, late int
		in              setting
		asleep          bool
	}
	var scripts []script
	for _, c := range []struct{ n, leaver int }{{3, 2}, {4, 1}, {5, 0}, {12, 1}, {12, 5}, {12, 11}, {12, 0}, {80, 79}} {
		for i, in := range everySetting(c.n) {
			for k, asleep := range []bool{false, true} {
				if testsize.Turn(i+k, 4) {
					scripts = append(scripts, script{c.n, c.leaver, -1, in, asleep})
				}
			}
		}
		if c.leaver != 0 {
			scripts = append(scripts, script{c.n, c.leaver, 0, setting{cores: 1}, false}, script{c.n, c.leaver, 0, setting{cores: c.n}, false})
		}
	}
	for _, c := range scripts {
		t.Run(fmt.Sprintf("rank %d of %d, late rank %d, %v, others asleep: %v", c.leaver, c.n, c.late, c.in, c.asleep), func(t *testing.T) {
			others, all := companyOf(c.n-2), companyOf(c.n-1)
			c.in.run(t, c.n, func(ctx context.Context, w *World, m *Meeting) error {
				if w.rank == c.leaver {
					if c.asleep {
						// They sleep for ever then, but for what wakes them.
						time.Sleep(3 * progress.FirstSleep) // computes
					}
					return nil
				}
				if w.rank == c.late {
					others.await(ctx)
				}
				err := m.Meet(ctx, "Meet", 0, 2)
				if w.rank != c.late && c.late >= 0 {
					others.join()
				}
				all.join()
				all.await(ctx)
				return misses(err, c.leaver)
			})
		})
	}
}

// Nobody waits for a rank that has given up, though it never comes: because of an operation on another that has left.
func TestMeetWithoutThoseThatGiveUp(t *testing.T) {
	const n, leaver = 12, 5
	for i, in := range everySetting(n) {
		for k, gives := range []int{0, 4, 6, 11} {
			if !testsize.Turn(i+k, 2) {
				continue
			}
			t.Run(fmt.Sprintf("rank %d, %v", gives, in), func(t *testing.T) {
				all := companyOf(n - 1)
				in.run(t, n, func(ctx context.Context, w *World, m *Meeting) error {
					if w.rank == leaver {
						return nil
					}
					var err error
					if w.rank != gives {
						err = m.Meet(ctx, "Meet", 0, 2)
					} else {
						m.GiveUp(2, leaver, false)
					}
					all.join()
					all.await(ctx)
					if w.rank == gives {
						return nil
					}
					return misses(err, leaver)
				})
			})
		}
	}
}

// A rank that has come to the root, and leaves without having waited there, is not missed, but one that leaves after it is.
func TestMeetBesideLeaver(t *testing.T) {
	const n, beside, last, absent = 12, 4, 11, 5
	for _, missed := range []bool{false, true} {
		t.Run(fmt.Sprintf("another is missed: %v", missed), func(t *testing.T) {
			ended, end := context.WithCancel(t.Context())
			end()
			worlds := make([]atomic.Pointer[World], n)
			setting{cores: 1}.run(t, n, func(ctx context.Context, w *World, m *Meeting) error {
				worlds[w.rank].Store(w)
				switch {
				case w.rank == beside:
					if err := m.Meet(ended, "Meet", 0, 2); !errors.Is(err, context.Canceled) {
						return fmt.Errorf("error is %v, want %w", err, context.Canceled)
					}
					return nil
				case w.rank == absent && missed, w.rank == last:
					if err := until(ctx, w, "one has left", func() bool { return w.Gone(beside) }); err != nil {
						return err
					}
					if w.rank == absent {
						return nil
					}
					// Those that wait look for a rank that is missed whenever they wake.
					for rank := range n {
						if rank == beside || rank == absent || rank == last {
							continue
						}
						other := worlds[rank].Load()
						sleeps := func() uint64 {
							n, _ := other.engine.Sleeps()
							return n
						}
						for before := sleeps(); sleeps() < before+3; {
							if err := ctx.Err(); err != nil {
								return err
							}
							w.Ring(rank)
							runtime.Gosched()
						}
					}
				}
				err := m.Meet(ctx, "Meet", 0, 2)
				var lost *PeerError
				if missed && errors.As(err, &lost) && errors.Is(err, ErrLeft) && lost.Rank == absent {
					return nil
				}
				if missed {
					return fmt.Errorf("error is %w, want that rank %d has left", err, absent)
				}
				return err
			})
		})
	}
}

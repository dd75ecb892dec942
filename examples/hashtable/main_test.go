package hashtable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/examples/internal/formtest"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

// a script is the body of a test on one rank: its checks end the rank with an error,
// in whatever process it is.
type script struct {
	ctx context.Context
	w   *world.World
}

type failure struct{ error }

func (s *script) ok(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func (s *script) fails(err, want error) {
	s.check(errors.Is(err, want), "error is %v, want %v", err, want)
}

func (s *script) check(ok bool, format string, args ...any) {
	if !ok {
		panic(failure{fmt.Errorf(format, args...)})
	}
}

func (s *script) barrier() { s.ok(s.w.Barrier(s.ctx)) }

// run is the error of body's first check that fails.
func (s *script) run(body func(s *script)) (err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = f.error
		default:
			panic(f)
		}
	}()
	body(s)
	return nil
}

func register(name string, body func(s *script)) string {
	return jobtest.Register(name, func(ctx context.Context, w *world.World) error {
		return (&script{ctx, w}).run(body)
	})
}

func (s *script) table(config Config) *Table {
	t, err := New(s.ctx, s.w, config)
	s.ok(err)
	// Some ranks divide small batches, too, and some combine nothing.
	t.part = [...]int{1, 3, leastPart}[s.w.Rank()%3]
	t.combines = s.w.Rank()%2 == 0
	return t
}

// close closes a table on which nobody works any more, when it has checked that this
// rank's records and indexes are apart from each other and in space that was allocated.
func (s *script) close(t *Table) {
	s.barrier()
	pieces := map[piece]bool{}
	v := viewIn(t.local)
	s.check(t.valid(v), "the indexes are at %+v", v)
	for _, c := range []control{v.current, v.next} {
		if c == v.next && !v.moving() {
			continue
		}
		x := t.indexOf(c)
		if x.cursor() > headerWords {
			pieces[piece{x.cursor() - t.recordStart(), blockWords(x.buckets)}] = true
		}
		for i := range x.buckets * bucketSlots {
			if entry := slot(t.local[x.start+i]); entry.taken() && entry != slotClosed && entry != slotMoved {
				s.ok(t.check(entry))
				pieces[piece{entry.place(), entry.words()}] = true
			}
		}
	}
	end := 0
	for _, p := range slices.SortedFunc(maps.Keys(pieces), func(a, b piece) int { return cmp.Compare(a.place, b.place) }) {
		s.check(p.place >= end, "%d words at %d overlap what ends at %d", p.words, p.place, end)
		end = p.place + p.words
	}
	s.check(end*wordBytes <= t.Stats().UsedBytes, "records end at word %d, %d bytes are allocated", end, t.Stats().UsedBytes)
	s.ok(t.Close())
}

// apart runs body on the first of two ranks whose memory is not mapped in each other's. elsewhere are keys of the other rank's.
func apart(t *testing.T, config Config, body func(s *script, t *Table, elsewhere []string)) {
	t.Helper()
	require.NoError(t, world.Run(t.Context(), 2, func(ctx context.Context, w *world.World) error {
		return (&script{ctx, w}).run(func(s *script) {
			t := s.table(config)
			t.combines = true
			var elsewhere []string
			for i := 0; len(elsewhere) < 20; i++ {
				if key := fmt.Sprint("key ", i); t.Owner(key) == 1 {
					elsewhere = append(elsewhere, key)
				}
			}
			if w.Rank() == 0 {
				body(s, t, elsewhere)
			}
			s.close(t)
		})
	}, jobtest.OptionsApart()...))
}

// alone runs body on the only rank of a job.
func alone(t *testing.T, body func(s *script)) {
	t.Helper()
	err := world.Run(t.Context(), 1, func(ctx context.Context, w *world.World) error {
		return (&script{ctx, w}).run(body)
	})
	if err != nil {
		t.Error(err)
	}
}

// everywhere runs bodies among 1, 2 and 5 ranks, goroutines and processes, in turns (see formtest).
func everywhere(t *testing.T, names ...string) {
	t.Helper()
	formtest.Run(t, [3]int{1, 2, 5}, names...)
}

// upTo returns how many operations a test does that knows no end: plain in a plain run, and most, of which no test needs
// more, with a large RMA_TEST_SIZE.
func upTo(plain, most int) int { return max(plain, min(testsize.N(plain), most)) / fewer }

// random returns a generator that draws the same for a rank and a part of a test whenever the job has the same seed.
func (s *script) random(part int) *rand.Rand {
	return rand.New(rand.NewPCG(formtest.Seed(), uint64(s.w.Rank())<<32|uint64(part)))
}

package hashtable

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/examples/internal/formtest"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

func TestMain(m *testing.M) { jobtest.Main(m) }

// fewer is the divisor of the numbers of operations under the race detector.
var fewer = testsize.Either(1, 8)

// A script has the checks of a body, and those for tables.
type script struct{ jobtest.Script }

func scripted(body func(s *script)) jobtest.Body {
	return jobtest.Scripted(func(s *jobtest.Script) { body(&script{*s}) })
}

func register(name string, body func(s *script)) string {
	return jobtest.Register(name, scripted(body))
}

func (s *script) table(config Config, options ...window.Option) *Table {
	t, err := New(s.Ctx, s.World, config, options...)
	s.OK(err)
	// On some ranks even small batches have parts, and some ranks combine nothing.
	t.part = [...]int{1, 3, leastPart}[s.World.Rank()%3]
	t.combines = s.World.Rank()%2 == 0
	return t
}

// close closes a table that no rank uses any more. Before that it checks that the rank's records and indexes do not
// overlap, and lie in allocated space.
func (s *script) close(t *Table) {
	s.Barrier()
	pieces := map[piece]bool{}
	v := viewIn(t.local)
	s.Check(t.valid(v), "the indexes are at %+v", v)
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
				s.OK(t.check(entry))
				pieces[piece{entry.place(), entry.words()}] = true
			}
		}
	}
	end := 0
	for _, p := range slices.SortedFunc(maps.Keys(pieces), func(a, b piece) int { return cmp.Compare(a.place, b.place) }) {
		s.Check(p.place >= end, "%d words at %d overlap what ends at %d", p.words, p.place, end)
		end = p.place + p.words
	}
	s.Check(end*wordBytes <= t.Stats().UsedBytes, "records end at word %d, %d bytes are allocated", end, t.Stats().UsedBytes)
	s.OK(t.Close())
}

// apart runs body on the first of two ranks that map no memory of each other. elsewhere are keys that the other rank
// owns.
func apart(t *testing.T, config Config, body func(s *script, t *Table, elsewhere []string)) {
	t.Helper()
	require.NoError(t, world.Run(t.Context(), 2, scripted(func(s *script) {
		t := s.table(config)
		t.combines = true
		var elsewhere []string
		for i := 0; len(elsewhere) < 20; i++ {
			if key := fmt.Sprint("key ", i); t.Owner(key) == 1 {
				elsewhere = append(elsewhere, key)
			}
		}
		if s.World.Rank() == 0 {
			body(s, t, elsewhere)
		}
		s.close(t)
	}), jobtest.OptionsApart()...))
}

// alone runs body in a job of one rank.
func alone(t *testing.T, body func(s *script)) {
	t.Helper()
	if err := world.Run(t.Context(), 1, scripted(body)); err != nil {
		t.Error(err)
	}
}

// everywhere runs bodies on 1, 2 and 3 ranks, or 5 in a larger run, as goroutines and processes, in turns (see
// formtest).
func everywhere(t *testing.T, names ...string) {
	t.Helper()
	ranks := [3]int{1, 2, 3}
	if testsize.N(1) > 1 {
		ranks[2] = 5
	}
	formtest.Run(t, ranks, names...)
}

// upTo returns the number of operations of a test that could run without end: plain in a plain run, and at most most in
// a larger one. With a small RMA_TEST_SIZE it is half of plain.
func upTo(plain, most int) int { return max(plain/2, min(testsize.N(plain), most)) / fewer }

// random returns a generator for a part of a test on this rank. The same seed of the job gives the same numbers.
func (s *script) random(part int) *rand.Rand {
	return rand.New(rand.NewPCG(formtest.Seed(), uint64(s.World.Rank())<<32|uint64(part)))
}

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

// fewer is how many times fewer operations tests do under the race detector.
var fewer = testsize.Either(1, 8)

// A script is a body's checks, with what only tests of tables check.
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
	// Some ranks divide small batches, too, and some combine nothing.
	t.part = [...]int{1, 3, leastPart}[s.World.Rank()%3]
	t.combines = s.World.Rank()%2 == 0
	return t
}

// close closes a table on which nobody works any more, when it has checked that this
// rank's records and indexes are apart from each other and in space that was allocated.
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

// apart runs body on the first of two ranks whose memory is not mapped in each other's. elsewhere are keys of the other rank's.
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

// alone runs body on the only rank of a job.
func alone(t *testing.T, body func(s *script)) {
	t.Helper()
	if err := world.Run(t.Context(), 1, scripted(body)); err != nil {
		t.Error(err)
	}
}

// everywhere runs bodies among 1, 2 and 3 ranks, or 5 where tests are to try more, goroutines and processes, in turns (see
// formtest).
func everywhere(t *testing.T, names ...string) {
	t.Helper()
	ranks := [3]int{1, 2, 3}
	if testsize.N(1) > 1 {
		ranks[2] = 5
	}
	formtest.Run(t, ranks, names...)
}

// upTo returns how many operations a test does that knows no end: plain in a plain run, and most, of which no test needs
// more, with a large RMA_TEST_SIZE. With a small one it is half of plain.
func upTo(plain, most int) int { return max(plain/2, min(testsize.N(plain), most)) / fewer }

// random returns a generator that draws the same for a rank and a part of a test whenever the job has the same seed.
func (s *script) random(part int) *rand.Rand {
	return rand.New(rand.NewPCG(formtest.Seed(), uint64(s.World.Rank())<<32|uint64(part)))
}

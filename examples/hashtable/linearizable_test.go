package hashtable

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/examples/internal/formtest"
	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/simtest"
	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/world"
)

const (
	historyKeys  = 8
	historyRanks = 3
)

// randomInputs fills inputs with random operations. The arguments of one client differ from those of all others.
func randomInputs(random *rand.Rand, inputs []input, next func() uint64) {
	for i := range inputs {
		in := input{kind: opKind(random.IntN(int(opDelete) + 1)), key: random.IntN(historyKeys)}
		// Half of the keys have values mainly of one kind, so that not every operation is of the wrong kind.
		if in.key%2 == 0 && in.kind != opDelete && random.IntN(4) > 0 {
			in.kind = []opKind{opGet, opPut}[random.IntN(2)]
		}
		if in.kind == opPut || in.kind == opAdd {
			in.arg = next()
		}
		inputs[i] = in
	}
}

// client runs random batches as one of several clients of its rank, until over returns true. Before each batch it calls
// between, which is not recorded.
func (s *script) client(t *Table, number int, permitted func(error) bool, between func(turn int, identity uint64), over func(turn int) bool) {
	r := s.recorder(number)
	defer func() { s.OK(r.file.Close()) }()
	identity := uint64(s.World.Rank()*goroutines + number + 1)
	random := s.random(number)
	var made uint64
	batch := t.NewBatch()
	inputs := make([]input, 6)
	for turn := 0; !over(turn); turn++ {
		if between != nil {
			between(turn, identity)
		}
		some := inputs[:1+random.IntN(len(inputs))]
		randomInputs(random, some, func() uint64 { made++; return made<<8 | identity })
		if len(s.World.Failures()) > 0 {
			for i := range some {
				for t.Owner(historyKey(some[i].key)) == victim {
					some[i].key = (some[i].key + 1) % historyKeys
				}
			}
		}
		r.run(batch, some, permitted)
	}
}

// work returns a body in which all ranks work on a few keys. mask selects bits of the hashes, so that keys can collide.
func work(mask uint64) func(s *script) {
	return func(s *script) {
		t := s.table(Config{Slots: 256, RecordBytes: 4 << 20})
		t.hash = func(key string) uint64 { return xxhash.Sum64String(key) & mask }
		turns := upTo(75, 150)
		s.concurrently(2, func(s *script, g int) {
			s.client(t, g, func(error) bool { return false }, nil, func(turn int) bool { return turn == turns })
		})
		s.close(t)
	}
}

// passing returns a function that adds and deletes keys, so that a table of few slots is rebuilt all the time.
func (s *script) passing(t *Table, permitted func(error) bool) func(turn int, identity uint64) {
	const each, alive = 12, 20
	return func(turn int, identity uint64) {
		b := t.NewBatch()
		for i := turn * each; i < (turn+1)*each; i++ {
			b.Add(fmt.Sprint("passing ", identity, " ", i), 1)
			if i >= alive {
				b.Delete(fmt.Sprint("passing ", identity, " ", i-alive))
			}
		}
		err := b.Run(s.Ctx)
		s.Check(err == nil || permitted(err), "what passes: %v", err)
	}
}

var recordedRebuilt = register("recorded work on a table that is rebuilt", func(s *script) {
	never := func(error) bool { return false }
	t := s.table(Config{Slots: 8, RecordBytes: 4 << 20})
	turns := upTo(50, 150)
	s.concurrently(2, func(s *script, g int) {
		s.client(t, g, never, s.passing(t, never), func(turn int) bool { return turn == turns })
	})
	var rebuilt uint64
	for _, stats := range gather(s, []Stats{t.Stats()}) {
		rebuilt += stats.Growths
	}
	s.Check(rebuilt > uint64(10/fewer), "the slots were replaced %d times", rebuilt)
	s.close(t)
})

var (
	recorded          = register("recorded work", work(^uint64(0)))
	recordedCollision = register("recorded work on keys that collide", work(1<<63))
)

// recordedDeath is recorded work during which the victim dies. The survivors continue for as many batches as before.
var recordedDeath = register("recorded work with a death", func(s *script) {
	const before, most = 30, 600
	t := s.table(Config{Slots: 8, RecordBytes: 64 << 20})
	s.concurrently(2, func(s *script, g int) {
		last := -1
		s.client(t, g, lost, s.passing(t, lost), func(turn int) bool {
			if turn == before && g == 0 {
				jobtest.Signal("ready")
			}
			if turn == most && len(s.World.Failures()) == 0 {
				wait := job.Of(s.World).NewWaiter()
				for len(s.World.Failures()) == 0 {
					s.OK(wait.Pause(s.Ctx))
				}
				wait.Finish()
			}
			if last < 0 && len(s.World.Failures()) > 0 {
				last = turn + before
			}
			return turn == last
		})
	})
	s.closeWithoutVictim(t)
})

// recording makes a new directory for histories.
func recording(t *testing.T) string {
	directory := t.TempDir()
	t.Setenv(historiesVariable, directory)
	return directory
}

// linearizable checks the recorded histories.
func linearizable(t *testing.T, directory string) {
	all := histories(t, directory)
	require.Greater(t, len(all), 20)
	require.Equal(t, porcupine.Ok, porcupine.CheckOperationsTimeout(tableModel, all, await.Limit))
}

// Every history has an order in which each operation takes effect at one moment between its call and its return.
func TestLinearizable(t *testing.T) {
	for _, body := range []string{recorded, recordedCollision, recordedRebuilt} {
		t.Run(body, func(t *testing.T) {
			formtest.Each(t, [3]int{2, 3, 4}, body, func(t *testing.T, run func()) {
				directory := recording(t)
				run()
				linearizable(t, directory)
			})
		})
	}
}

func TestLinearizableOnSimulatedCards(t *testing.T) {
	for seed := range testsize.Samples(t, 3) {
		directory := recording(t)
		require.NoError(t, world.Simulate(t.Context(), simtest.New(t, "ndr-2024", seed), historyRanks, scripted(func(s *script) {
			never := func(error) bool { return false }
			table := s.table(Config{Slots: 8, RecordBytes: 4 << 20})
			s.client(table, 0, never, s.passing(table, never), func(turn int) bool { return turn == 60 })
			s.close(table)
		})))
		linearizable(t, directory)
	}
}

// A rank is killed while it works. Each operation that it has begun takes effect before its death or not at all, and
// all survivors agree on that.
func TestLinearizableDeath(t *testing.T) {
	for _, device := range []string{"", "tcp"} {
		t.Run("device "+device, func(t *testing.T) {
			directory := recording(t)
			jobtest.StartWith(t, historyRanks, recordedDeath, func(int) []string { return []string{"RMA_DEVICE=" + device} }).Killed(victim)
			linearizable(t, directory)
		})
	}
}

// The check rejects histories that are not linearizable.
func TestHistoriesThatAreNot(t *testing.T) {
	found := func(value uint64) output { return output{found: true, value: value} }
	put := porcupine.Operation{Input: input{kind: opPut, arg: 1}, Call: 1, Output: output{}, Return: 2}
	again := porcupine.Operation{Input: input{kind: opPut, arg: 2}, Call: 3, Output: found(0), Return: 6}
	for _, c := range []struct {
		name  string
		third porcupine.Operation
		want  bool
	}{
		{"an old value beside the new one", porcupine.Operation{Input: input{kind: opGet}, Call: 4, Output: found(1), Return: 7}, true},
		{"a new value beside the old one", porcupine.Operation{Input: input{kind: opGet}, Call: 4, Output: found(2), Return: 7}, true},
		{"an old value after the new one", porcupine.Operation{Input: input{kind: opGet}, Call: 7, Output: found(1), Return: 8}, false},
		{"a value of nobody", porcupine.Operation{Input: input{kind: opGet}, Call: 4, Output: found(3), Return: 7}, false},
		{"nothing", porcupine.Operation{Input: input{kind: opGet}, Call: 4, Output: output{}, Return: 7}, false},
		{"a second insert", porcupine.Operation{Input: input{kind: opPut, arg: 3}, Call: 4, Output: output{}, Return: 7}, false},
		{"a counter", porcupine.Operation{Input: input{kind: opAdd, arg: 3}, Call: 4, Output: output{found: true, value: 3}, Return: 7}, false},
		{"a refused counter", porcupine.Operation{Input: input{kind: opAdd, arg: 3}, Call: 4, Output: output{wrongKind: true}, Return: 7}, true},
		{"a delete in the midst", porcupine.Operation{Input: input{kind: opDelete}, Call: 4, Output: output{found: true}, Return: 7}, true},
	} {
		require.Equal(t, c.want, porcupine.CheckOperations(tableModel, []porcupine.Operation{put, again, c.third}), c.name)
	}
}

package hashtable

import (
	"errors"
	"fmt"
	"testing"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/world"
)

const victim = 1

// lost reports whether err is the failure of the victim.
func lost(err error) bool {
	var failed *world.PeerError
	return errors.As(err, &failed) && failed.Rank == victim
}

func (s *script) closeWithoutVictim(t *Table) {
	err := t.Close()
	s.Check(lost(err), "Close after a death gives %v, want a *world.PeerError of the victim", err)
	s.Fails(t.Close(), ErrClosed)
}

// Survivors continue with the entries that the victim did not own.
var survivors = register("survivors", func(s *script) {
	t := s.table(roomy)
	const keys = 100
	for i := range keys {
		if i%s.World.Size() == s.World.Rank() {
			s.OK(t.Put(s.Ctx, fmt.Sprint(i), []byte{byte(i)}))
		}
	}
	s.Barrier()
	jobtest.Signal("ready")
	if s.World.Rank() == victim {
		<-s.Ctx.Done()
		return
	}
	wait := job.Of(s.World).NewWaiter()
	defer wait.Finish()
	for len(s.World.Failures()) == 0 {
		s.OK(wait.Pause(s.Ctx))
	}
	served := 0
	for i := range keys {
		key := fmt.Sprint(i)
		value, found, err := t.Get(s.Ctx, key)
		if t.Owner(key) == victim {
			s.Check(lost(err), "error is %v, want a *world.PeerError of the victim", err)
			continue
		}
		s.OK(err)
		s.Check(found && len(value) == 1 && value[0] == byte(i), "%q is %v, %v", key, value, found)
		served++
	}
	s.Check(served > keys/4, "only %d keys were served", served)
	batch := t.NewBatch()
	for i := range keys {
		batch.Add(fmt.Sprint("count ", i), 1)
	}
	s.Check(batch.Run(s.Ctx) != nil, "a batch with keys of the dead succeeds")
	for i := range keys {
		failed := batch.Result(i).Err != nil
		s.Check(failed == (t.Owner(fmt.Sprint("count ", i)) == victim), "operation %d: %v", i, batch.Result(i).Err)
	}
	batch.Reset()
	s.closeWithoutVictim(t)
})

// A rank is killed while it writes. Entries of survivors stay whole, survivors can change them, and their counts are
// exact.
var interrupted = register("a writer dies", func(s *script) {
	t := s.table(Config{Slots: 64, RecordBytes: 4 << 20})
	random := s.random(9)
	const keys = 5
	added := map[string]uint64{}
	turn := func() {
		for i := range keys {
			key := fmt.Sprint("key ", i)
			var err error
			switch random.IntN(3) {
			case 0:
				err = t.Put(s.Ctx, key, sealed(random, random.IntN(200)))
			case 1:
				_, err = t.Delete(s.Ctx, key)
			default:
				var value []byte
				var found bool
				value, found, err = t.Get(s.Ctx, key)
				s.Check(!found || isSealed(value), "read a value of %d bytes that nobody put", len(value))
			}
			s.Check(err == nil || lost(err) || errors.Is(err, ErrFull), "%v", err)
			mine := fmt.Sprintf("count %d of %d", i, s.World.Rank())
			if _, err = t.Add(s.Ctx, mine, 1); err == nil {
				added[mine]++
			}
			s.Check(err == nil || lost(err), "%v", err)
		}
	}
	for range 50 {
		turn()
	}
	jobtest.Signal("ready")
	for s.World.Rank() == victim || len(s.World.Failures()) == 0 {
		turn()
		s.OK(s.Ctx.Err())
	}
	turn()
	for key, want := range added {
		count, found, err := t.Count(s.Ctx, key)
		if t.Owner(key) == victim {
			s.Check(lost(err), "the victim's counter gives %v", err)
			continue
		}
		s.OK(err)
		s.Check(found && count == want, "%q is %d, want %d", key, count, want)
	}
	for key, value := range t.Local() {
		s.Check(value.Counter || isSealed(value.Bytes), "entry %q has %d bytes that nobody put", key, len(value.Bytes))
	}
	s.closeWithoutVictim(t)
})

func TestDeath(t *testing.T) {
	for _, name := range []string{survivors, interrupted} {
		t.Run(name, func(t *testing.T) {
			jobtest.Start(t, 3, name).Killed(victim)
		})
	}
}

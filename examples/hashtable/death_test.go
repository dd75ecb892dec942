package hashtable

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/world"
	"github.com/onesided/rma/world/worldtest"
)

// survivors go on with what the dead did not own.
var survivors = register("survivors", func(s *script) {
	t := s.table(roomy)
	const keys = 100
	for i := range keys {
		if i%s.w.Size() == s.w.Rank() {
			s.ok(t.Put(s.ctx, fmt.Sprint(i), []byte{byte(i)}))
		}
	}
	s.barrier()
	worldtest.Signal("ready")
	if s.w.Rank() == 1 {
		<-s.ctx.Done()
		return
	}
	wait := s.w.NewWaiter()
	defer wait.Finish()
	for s.w.Failures() == 0 {
		s.ok(wait.Pause(s.ctx))
	}
	served := 0
	for i := range keys {
		key := fmt.Sprint(i)
		value, found, err := t.Get(s.ctx, key)
		if t.Owner(key) == 1 {
			var lost *world.PeerError
			s.check(errors.As(err, &lost) && lost.Rank == 1, "error is %v, want a *world.PeerError of rank 1", err)
			continue
		}
		s.ok(err)
		s.check(found && len(value) == 1 && value[0] == byte(i), "%q is %v, %v", key, value, found)
		served++
	}
	s.check(served > keys/4, "only %d keys were served", served)
	batch := t.NewBatch()
	for i := range keys {
		batch.Add(fmt.Sprint("count ", i), 1)
	}
	s.check(batch.Run(s.ctx) != nil, "a batch with keys of the dead succeeds")
	for i := range keys {
		failed := batch.Result(i).Err != nil
		s.check(failed == (t.Owner(fmt.Sprint("count ", i)) == 1), "operation %d: %v", i, batch.Result(i).Err)
	}
})

func TestDeathOfAnOwner(t *testing.T) {
	job := worldtest.Start(t, 3, survivors)
	for rank := range 3 {
		job.Await(rank, "ready")
	}
	job.Kill(1)
	errs := job.Wait()
	require.Error(t, errs[1])
	require.NoError(t, errs[0])
	require.NoError(t, errs[2])
}

package hashtable

import (
	"fmt"
	"strings"
	"testing"

	"github.com/onesided/rma/internal/hint"
	"github.com/onesided/rma/scheduler"
	"github.com/onesided/rma/window"
)

// Options apply to the table's window. An option that the window rejects makes New fail on all ranks. Options that
// change how operations are arranged do not change the table's results.
var options = register("options", func(s *script) {
	config := Config{Slots: 1024, RecordBytes: 64 << 10}
	_, err := New(s.Ctx, s.World, config, window.Notifications(-1))
	s.Fails(err, window.ErrArgument)
	s.Check(strings.HasPrefix(err.Error(), "hashtable: "), "%q does not begin with the package", err)

	for _, without := range []scheduler.Scheme{0, scheduler.Pack, scheduler.Defer | scheduler.Adapt} {
		t, err := New(s.Ctx, s.World, config, hint.Without(without))
		s.OK(err)
		batch := t.NewBatch()
		for i := range 100 {
			batch.Put(fmt.Sprintf("%d of rank %d", i, s.World.Rank()), []byte{byte(i)})
		}
		s.OK(batch.Run(s.Ctx))
		s.Barrier()
		batch.Reset()
		for i := range 100 {
			batch.Get(fmt.Sprintf("%d of rank %d", i, (s.World.Rank()+1)%s.World.Size()))
		}
		s.OK(batch.Run(s.Ctx))
		for i := range 100 {
			r := batch.Result(i)
			s.Check(r.Found && len(r.Value) == 1 && r.Value[0] == byte(i), "without %#x entry %d is %v, %v", without, i, r.Value, r.Found)
		}
		s.close(t)
	}
})

func TestOptions(t *testing.T) { everywhere(t, options) }

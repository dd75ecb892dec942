//go:build !race

package hashtable

import (
	"fmt"
	"testing"
)

// A batch that has its memory allocates nothing for operations on existing entries, except for the value that Get
// returns. (Under the race detector, pools drop entries at random.)
func TestAllocations(t *testing.T) {
	alone(t, func(s *script) {
		table := s.table(Config{Slots: 1024, RecordBytes: 1 << 20})
		keys := make([]string, 64)
		for i := range keys {
			keys[i] = fmt.Sprint("key ", i)
			_, err := table.Add(s.Ctx, keys[i], 1)
			s.OK(err)
		}
		value := []byte("value")
		s.OK(table.Put(s.Ctx, "bytes", value))
		to, wrong := make([]byte, 0, 100), false
		batch := table.NewBatch()
		for _, c := range []struct {
			name string
			want float64
			do   func() error
		}{
			{"Add", 0, func() error { _, err := table.Add(s.Ctx, keys[1], 1); return err }},
			{"Count", 0, func() error { _, _, err := table.Count(s.Ctx, keys[2]); return err }},
			{"Get", 1, func() error { _, _, err := table.Get(s.Ctx, "bytes"); return err }},
			{"AppendGet", 0, func() error {
				to, _, err := table.AppendGet(s.Ctx, to[:0], "bytes")
				wrong = wrong || string(to) != "value"
				return err
			}},
			{"Put", 0, func() error { return table.Put(s.Ctx, "bytes", value) }},
			{"Batch", 0, func() error {
				batch.Reset()
				for _, key := range keys {
					batch.Add(key, 1)
					batch.Count(key)
					batch.Get("bytes")
				}
				return batch.Run(s.Ctx)
			}},
		} {
			got := testing.AllocsPerRun(100, func() { s.OK(c.do()) })
			s.Check(got == c.want, "%s makes %v allocations, want %v", c.name, got, c.want)
		}
		s.Check(!wrong, "AppendGet gives another value")
		s.OK(table.Close())
	})
}

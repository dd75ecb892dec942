package hashtable

import (
	"errors"
	"strings"
	"testing"
)

// An error over the kind of a value says which call is for that.
func TestKindSays(t *testing.T) {
	alone(t, func(s *script) {
		table := s.table(Config{Slots: 8, RecordBytes: 800})
		s.OK(table.Put(s.Ctx, "bytes", nil))
		_, err := table.Add(s.Ctx, "count", 1)
		s.OK(err)
		_, _, get := table.Get(s.Ctx, "count")
		_, _, count := table.Count(s.Ctx, "bytes")
		_, add := table.Add(s.Ctx, "bytes", 1)
		put := table.Put(s.Ctx, "count", nil)
		for _, err := range []error{get, put} {
			s.Fails(err, ErrKind)
			s.Check(strings.HasSuffix(err.Error(), "wrong kind of value: the value is a counter; read it by Count"), "the error is %v", err)
		}
		for _, err := range []error{count, add} {
			s.Fails(err, ErrKind)
			s.Check(strings.HasSuffix(err.Error(), "wrong kind of value: the value is bytes; read it by Get"), "the error is %v", err)
		}
		err = &OpError{Op: "Get", Key: "k", Cause: errors.New("another")}
		s.Check(err.Error() == `hashtable: Get of "k" at rank 0: another`, "the error is %v", err)
		s.close(table)
	})
}

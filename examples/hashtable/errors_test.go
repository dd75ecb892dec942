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
		s.ok(table.Put(s.ctx, "bytes", nil))
		_, err := table.Add(s.ctx, "count", 1)
		s.ok(err)
		_, _, get := table.Get(s.ctx, "count")
		_, _, count := table.Count(s.ctx, "bytes")
		_, add := table.Add(s.ctx, "bytes", 1)
		put := table.Put(s.ctx, "count", nil)
		for _, err := range []error{get, put} {
			s.fails(err, ErrKind)
			s.check(strings.HasSuffix(err.Error(), "wrong kind of value: the value is a counter; read it by Count"), "the error is %v", err)
		}
		for _, err := range []error{count, add} {
			s.fails(err, ErrKind)
			s.check(strings.HasSuffix(err.Error(), "wrong kind of value: the value is bytes; read it by Get"), "the error is %v", err)
		}
		err = &OpError{Op: "Get", Key: "k", Cause: errors.New("another")}
		s.check(err.Error() == `hashtable: Get of "k" at rank 0: another`, "the error is %v", err)
		s.close(table)
	})
}

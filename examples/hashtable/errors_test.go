package hashtable

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/onesided/rma/window"
)

// The error for a wrong kind of value names the call for the right kind.
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

// A call without a context, and a New without a World, return an error with the name of the call and change nothing.
func TestNilContext(t *testing.T) {
	var none context.Context
	alone(t, func(s *script) {
		_, err := New(none, s.World, Config{Slots: 8, RecordBytes: 800})
		s.Fails(err, window.ErrArgument)
		_, err = New(s.Ctx, nil, Config{Slots: 8, RecordBytes: 800})
		s.Fails(err, window.ErrArgument)
		s.Check(err.Error() == "hashtable: New: invalid argument: nil World", "the error is %v", err)
		table := s.table(Config{Slots: 8, RecordBytes: 800, Clients: 1})
		_, _, get := table.Get(none, "k")
		_, _, count := table.Count(none, "k")
		_, add := table.Add(none, "k", 1)
		_, remove := table.Delete(none, "k")
		_, stats := table.StatsOf(none, 0)
		_, attach := Attach(none, s.World, "table")
		entries, all := table.All(none)
		batch := table.NewBatch()
		batch.Put("k", nil)
		for name, err := range map[string]error{
			"Get": get, "Put": table.Put(none, "k", nil), "Count": count, "Add": add, "Delete": remove, "StatsOf": stats,
			"Attach": attach, "Serve": table.Serve(none, nil, "table"), "Run": batch.Run(none), "All": all(),
		} {
			s.Fails(err, window.ErrArgument)
			s.Check(strings.Contains(err.Error(), name) && strings.Contains(err.Error(), "nil context"), "%s is refused with %v", name, err)
		}
		for key := range entries {
			s.Check(false, "a range without a context has %q", key)
		}
		s.Fails(all(), window.ErrArgument)
		for key := range table.Local() {
			s.Check(false, "a refused call has put %q", key)
		}
		s.close(table)
	})
}

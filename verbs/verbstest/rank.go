package verbstest

import (
	"reflect"

	"github.com/onesided/rma/verbs"
)

// A rank is one side of a case.
type rank struct {
	*bench
	// station is nil if the rank may be in another process, device likewise.
	station *station
	device  verbs.Device
	driver  driver
	address string
}

func (b *bench) rank(s *station, d driver) *rank {
	b.Helper()
	r := &rank{bench: b, station: s, driver: d}
	if s != nil {
		r.device = s.device
	}
	r.address = r.must(addressStep{}).Address
	return r
}

// may carries a step out; what the device said is the caller's to judge.
func (r *rank) may(p step) answer {
	r.Helper()
	a := r.driver.do(p)
	if a.Failure != "" {
		r.Fatalf("%T: %s", p, a.Failure)
	}
	return a
}

// must carries a step out and fails the case if the device refuses.
func (r *rank) must(p step) answer {
	r.Helper()
	return r.well(p, r.driver.do(p))
}

// well fails the case unless a step was carried out and the device took it.
func (r *rank) well(p step, a answer) answer {
	r.Helper()
	if a.Failure != "" {
		r.Fatalf("%T: %s", p, a.Failure)
	}
	if a.Err != nil {
		r.Fatalf("%T: %v", p, a.Err)
	}
	return a
}

// begin carries a step out while the case goes on. The function that it
// returns waits for it, and fails the case as must does.
func (r *rank) begin(p step) (wait func() answer) {
	done := make(chan answer, 1)
	go func() { done <- r.driver.do(p) }()
	return func() answer {
		r.Helper()
		return r.well(p, <-done)
	}
}

// able is the rank's device as one with an optional ability, such as verbs.Mapper; where
// it has none the case is skipped.
func able[T any](r *rank) T {
	r.Helper()
	device, ok := r.device.(T)
	r.skipUnless(ok, "the device is no "+reflect.TypeFor[T]().Name())
	return device
}

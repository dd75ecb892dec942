package verbstest

import (
	"reflect"

	"github.com/onesided/rma/verbs"
)

// A rank is one side of a case.
type rank struct {
	*bench
	// station and device are nil if the rank may be in another process.
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

// may executes a step. The caller judges the device's error.
func (r *rank) may(p step) answer {
	r.Helper()
	a := r.driver.do(p)
	if a.Failure != "" {
		r.Fatalf("%T: %s", p, a.Failure)
	}
	return a
}

// must executes a step and fails the case if the device returns an error.
func (r *rank) must(p step) answer {
	r.Helper()
	return r.well(p, r.driver.do(p))
}

// well fails the case unless a step was executed without an error of the device.
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

// begin executes a step while the case continues. The returned function waits for it, and fails the case as must does.
func (r *rank) begin(p step) (wait func() answer) {
	done := make(chan answer, 1)
	go func() { done <- r.driver.do(p) }()
	return func() answer {
		r.Helper()
		return r.well(p, <-done)
	}
}

// able returns the rank's device with an optional ability, such as verbs.Mapper. It skips the case if the device lacks
// it.
func able[T any](r *rank) T {
	r.Helper()
	device, ok := r.device.(T)
	r.skipUnless(ok, "the device is no "+reflect.TypeFor[T]().Name())
	return device
}

package window_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/onesided/rma/window"
)

// Copies of requests are waited for by several goroutines at once, and again when the epoch has ended.
var requestCopies = registerShared("copies of requests", []int{2}, func(s *script) {
	win := allocate[int64](s, 2)
	other := 1 - s.World.Rank()
	win.Local()[1] = 5
	s.OK(s.World.Barrier(s.Ctx))
	s.OK(win.Lock(s.Ctx, window.Shared, other))
	got := []int64{-1}
	put, putErr := win.RPut([]int64{7}, other, 0)
	get, getErr := win.RGet(got, other, 1)
	flush, flushErr := win.RFlush(other)
	s.OK(errors.Join(putErr, getErr, flushErr))
	var together sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		together.Go(func() {
			errs[i] = errors.Join(flush.Wait(s.Ctx), put.Wait(s.Ctx), get.Wait(s.Ctx))
		})
	}
	together.Wait()
	s.OK(errors.Join(errs...))
	s.Check(got[0] == 5, "the get has read %d", got[0])
	s.OK(win.Unlock(s.Ctx, other))
	s.OK(window.WaitAll(s.Ctx, put, get, flush))
	s.OK(s.World.Barrier(s.Ctx))
	s.Check(win.Local()[0] == 7, "the put has stored %d", win.Local()[0])
	s.OK(win.Close())
})

func TestRequestCopies(t *testing.T) { runShared(t, requestCopies) }

package simtest

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs/sim"
)

// failing is a test that records how it failed.
type failing struct {
	testing.TB
	said []any
}

func (f *failing) Fatal(said ...any) {
	f.said = said
	runtime.Goexit()
}

// failure returns the arguments with which a test fails.
func failure(t *testing.T, test func(t testing.TB)) []any {
	f := &failing{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		test(f)
	}()
	<-ended
	return f.said
}

func TestNew(t *testing.T) {
	require.Equal(t, "pcie-2005", New(t, "pcie-2005", 1).Profile().Name)
	p := Profile(t, "ndr-2024")
	p.CoherentAtomics = !p.CoherentAtomics
	require.Equal(t, p, With(t, p, 1).Profile())
}

func TestFailures(t *testing.T) {
	require.NotEmpty(t, failure(t, func(t testing.TB) { New(t, "no such profile", 1) }))
	require.NotEmpty(t, failure(t, func(t testing.TB) { Profile(t, "no such profile") }))
	require.NotEmpty(t, failure(t, func(t testing.TB) { With(t, sim.Profile{Link: -1}, 1) }))
}

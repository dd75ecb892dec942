package nettest_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/nettest"
	"github.com/onesided/rma/internal/testsize"
)

// A witness is a test that records why it ends.
type witness struct {
	testing.TB
	said string
}

func (w *witness) Helper() {}

func (w *witness) Fatalf(format string, arguments ...any) {
	w.said = fmt.Sprintf(format, arguments...)
	runtime.Goexit()
}

func (w *witness) Skipf(format string, arguments ...any) { w.Fatalf(format, arguments...) }

// see runs a function that is to end a test, and returns the reason.
func see(w *witness, f func()) string {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
	return w.said
}

// Wrong arguments and missing programs are reported.
func TestRefusals(t *testing.T) {
	w := &witness{TB: t}
	require.Equal(t, "nettest: network of 0 hosts: from 1 to 250 are possible", see(w, func() { nettest.New(w, 0) }))
	require.Equal(t, "nettest: network of 251 hosts: from 1 to 250 are possible", see(w, func() { nettest.New(w, 251) }))
	nettest.New(t, 1)
	n := nettest.New(w, 2)
	for name, call := range map[string]func(){
		"Cut":     func() { n.Cut(2) },
		"Join":    func() { n.Join(2) },
		"Address": func() { n.Address(2) },
		"Command": func() { n.Command(2, "true") },
		"Do":      func() { _ = n.Do(2, func() error { return nil }) },
	} {
		require.Equal(t, "nettest: host 2 of a network of 2", see(w, call), name)
	}
	t.Setenv("PATH", t.TempDir())
	require.Contains(t, see(w, func() { nettest.New(w, 1) }), "which is not installed")
}

// A network may have Most hosts, which a large run tries.
func TestMost(t *testing.T) {
	t.Parallel()
	hosts := min(testsize.N(25), nettest.Most)
	n := nettest.New(t, hosts)
	last := hosts - 1
	start(t, n, last, "echo", at(n, last))
	c := dial(t, n, 0, at(n, last))
	say(t, c, "from far away")
	hear(t, c, "from far away")
}

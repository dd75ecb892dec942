package tcp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/tcp"
	"github.com/onesided/rma/verbs/verbstest"
)

const everything = tcp.Batches | tcp.PollRecent | tcp.HeaderReads | tcp.FewSockets | tcp.Copies | tcp.Reno | tcp.DelayedAcknowledgements

// Without its optimizations the device does the same.
func TestConformanceWithout(t *testing.T) {
	verbstest.Run(t, verbstest.Config{Driven: true, Variant: []string{"Transfer"}, Open: func(t testing.TB) verbs.Device {
		device, err := tcp.Open(tcp.Options{Without: everything, Silence: await.Limit})
		require.NoError(t, err)
		return device
	}})
}

func TestUnknownOptimization(t *testing.T) {
	_, err := tcp.Open(tcp.Options{Without: everything + 1})
	require.ErrorContains(t, err, "Without")
}

// BenchmarkWithout shows each optimization on and off, where it is of use: beside is how
// many connections on which nothing happens, count how many writes of that many bytes.
func BenchmarkWithout(b *testing.B) {
	for _, c := range []struct {
		name                 string
		one                  tcp.Optimization
		beside, count, bytes int
	}{
		{"batches", tcp.Batches, 1, 32, 8},
		{"poll recent", tcp.PollRecent, 7, 1, 8},
		{"header reads", tcp.HeaderReads, 1, 16, 64 << 10},
		{"few sockets", tcp.FewSockets, 1, 1, 8},
		{"copies", tcp.Copies, 1, 16, 256},
		{"reno", tcp.Reno, 1, 1, 8},
	} {
		for _, without := range []tcp.Optimization{0, c.one} {
			name := c.name + "/on"
			if without != 0 {
				name = c.name + "/off"
			}
			b.Run(name, func(b *testing.B) {
				l := link(b, false, tcp.Options{Without: without})
				for range c.beside {
					l.connect(b)
				}
				l.pair = l.connect(b)
				l.serve(b)
				one := l.request(verbs.OpRDMAWrite, c.bytes)[0]
				one.Flags = 0
				requests := make([]verbs.SendRequest, c.count)
				for i := range requests {
					requests[i] = one
				}
				requests[c.count-1].Flags = verbs.Signalled
				for b.Loop() {
					if n := l.post(b, requests); n == 0 {
						l.await(b, 1)
					}
				}
			})
		}
	}
}

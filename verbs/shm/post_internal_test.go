package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// hot are the paths that a program takes for every message.
var hot = []struct {
	name string
	step func(near, far *side, batch *batch)
}{
	{"empty poll", func(near, _ *side, b *batch) { near.queue.Poll(b.completions[:]) }},
	{"write", func(near, _ *side, b *batch) {
		_, _ = near.pair.PostSend(b.write[:])
		near.queue.Poll(b.completions[:])
	}},
	{"send", func(near, far *side, b *batch) {
		_, _ = far.pair.PostReceive(b.receive[:])
		_, _ = near.pair.PostSend(b.send[:])
		far.queue.Poll(b.completions[:])
		near.queue.Poll(b.completions[:])
	}},
}

// batch is what the steps post and poll.
type batch struct {
	write, send [1]verbs.SendRequest
	receive     [1]verbs.ReceiveRequest
	completions [4]verbs.Completion
}

func newBatch(near, far *side) *batch {
	return &batch{
		write: [1]verbs.SendRequest{{Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled, Segments: near.segment(0, 8),
			RemoteAddress: far.region.Remote().Address, RKey: far.region.Remote().RKey}},
		send:    [1]verbs.SendRequest{{Opcode: verbs.OpSend, Flags: verbs.Signalled, Segments: near.segment(0, 8)}},
		receive: [1]verbs.ReceiveRequest{{Segments: far.segment(64, 8)}},
	}
}

func BenchmarkPath(b *testing.B) {
	for _, form := range both {
		for _, path := range hot {
			b.Run(form.name+"/"+path.name, func(b *testing.B) {
				near, far := connected(b, form.open(b), verbs.QueuePairConfig{})
				batch := newBatch(near, far)
				b.ReportAllocs()
				for b.Loop() {
					path.step(near, far, batch)
				}
			})
		}
	}
}

// TestPathAllocates looks that what is done for every message allocates nothing, once
// each of the slots for requests has been used.
func TestPathAllocates(t *testing.T) {
	for _, form := range both {
		for _, path := range hot {
			t.Run(form.name+"/"+path.name, func(t *testing.T) {
				near, far := connected(t, form.open(t), verbs.QueuePairConfig{MaxSends: 2, MaxReceives: 2})
				batch := newBatch(near, far)
				for range 4 {
					path.step(near, far, batch)
				}
				require.Zero(t, testing.AllocsPerRun(100, func() { path.step(near, far, batch) }))
			})
		}
	}
}

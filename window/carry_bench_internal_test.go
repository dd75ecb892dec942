package window

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/aggregate"
	"github.com/onesided/rma/aggregate/reduce"
	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/world"
)

// BenchmarkCarry has a rank carry out packets of operations on words at random places of 64 MB
// of its own.
func BenchmarkCarry(b *testing.B) {
	for _, c := range []struct {
		name  string
		shape aggregate.Shape
	}{
		{"put", aggregate.Shape{Kind: aggregate.Put, Size: 8}},
		{"get", aggregate.Shape{Kind: aggregate.Get, Size: 8}},
		{"accumulate", aggregate.Shape{Kind: aggregate.Accumulate, Op: Xor, Element: reduce.Uint64, Size: 8}},
		{"fetch", aggregate.Shape{Kind: aggregate.Fetch, Op: Sum, Element: reduce.Uint64, Size: 8}},
	} {
		b.Run(c.name, func(b *testing.B) {
			require.NoError(b, world.Run(b.Context(), 2, func(ctx context.Context, w *world.World) error {
				win, err := Allocate[uint64](ctx, w, 8<<20)
				if err != nil || w.Rank() == 0 {
					return errors.Join(err, w.Barrier(ctx), win.Close())
				}
				link, err := job.Of(w).Link(0)
				if err != nil {
					return err
				}
				random := rand.New(rand.NewPCG(1, 2))
				packets, operations := make([][]byte, 64), 0
				for i := range packets {
					var packet aggregate.Writer
					packet.Begin(make([]byte, link.MaxPayload()), link.MaxPayload())
					for {
						operand, ok := packet.Add(&c.shape, random.Uint64N(8<<20)*8)
						if !ok {
							break
						}
						if len(operand) > 0 {
							binary.LittleEndian.PutUint64(operand, 1)
						}
					}
					packets[i], operations = packet.Packet(), packet.Operations()
				}
				i := 0
				for b.Loop() {
					carried, err := win.core.server.carry(link, packets[i%len(packets)])
					if err != nil || !carried.goOn() || carried.refused != nil {
						return errors.Join(err, carried.refused, errors.New("not carried out"))
					}
					i++
				}
				b.ReportMetric(float64(b.Elapsed()/time.Nanosecond)/float64(b.N*operations), "ns/operation")
				return errors.Join(w.Barrier(ctx), win.Close())
			}, world.WithDevice("tcp")))
		})
	}
}

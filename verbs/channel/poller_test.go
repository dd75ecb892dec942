package channel_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/onesided/rma/internal/testsize"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/channel"
)

// content is what message i of a rank is.
func content(rank, i, most int) []byte {
	var seed [32]byte
	seed[0], seed[1], seed[2] = byte(rank), byte(i), byte(i>>8)
	random := rand.NewChaCha8(seed)
	payload := make([]byte, 1+random.Uint64()%uint64(most))
	_, _ = random.Read(payload)
	return payload
}

// TestConversation: messages of all lengths, by ring, by pipe and as eager messages, both ways at once, come in order
// and whole, while they are released in any order, and now and then the rank prepares to sleep.
func TestConversation(t *testing.T) {
	const usual = 900
	count := testsize.N(1000)
	for _, rig := range rigs {
		for name, options := range map[string]channel.Options{
			"rings": {Ring: channel.Config{Buffers: 8, BufferBytes: 128, MaxMessage: 600}, MaxMessage: usual, Budget: 1 << 20, WithoutPipes: true},
			"pipes": {MaxMessage: 10 * usual, Budget: 1 << 20},
			"eager": {MaxMessage: usual, Budget: -1},
		} {
			t.Run(rig.name+"/"+name, func(t *testing.T) {
				rig.run(t, options, func(r *rank) error {
					most := options.MaxMessage
					random := rand.New(rand.NewPCG(1, uint64(r.number)))
					sent, got, polled := 0, 0, 0
					var held []channel.Arrival
					buffer, gathered, err := r.registered(most)
					if err != nil {
						return err
					}
					for sent < count || got < count || len(held) > 0 || r.end.Lent() {
						if r.device.Now()-r.began > limit {
							return fmt.Errorf("%d sent, %d got, %d held", sent, got, len(held))
						}
						for sent < count && random.IntN(8) > 0 {
							payload := content(r.number, sent, most)
							if random.IntN(4) == 0 && !r.end.Lent() {
								head := random.IntN(len(payload))
								n := copy(buffer, payload[head:])
								err = r.end.SendFrom(payload[:head], verbs.Segment{Memory: buffer[:n], LKey: gathered.LKey()})
							} else {
								err = r.end.Send(payload)
							}
							if errors.Is(err, verbs.ErrQueueFull) {
								break
							}
							if err != nil {
								return err
							}
							sent++
						}
						n := r.Poll(r.into[:random.IntN(1+len(r.into))])
						for _, a := range r.into[:n] {
							if a.Err != nil {
								return a.Err
							}
							if want := content(1-r.number, got, most); !bytes.Equal(a.Payload, want) {
								return fmt.Errorf("message %d is %d bytes, want %d", got, len(a.Payload), len(want))
							}
							got++
							held = append(held, a)
						}
						polled = max(polled, r.Polled())
						for len(held) > 0 && (len(held) > 4 || n == 0) {
							i := random.IntN(len(held))
							r.end.Release(&held[i])
							held = slices.Delete(held, i, i+1)
						}
						if random.IntN(500) == 0 {
							r.PrepareSleep()
						}
						if n == 0 {
							r.pause()
						}
					}
					if rings := options.Budget > 0; rings != (polled > 0) {
						return fmt.Errorf("%d rings were polled", polled)
					}
					return errors.Join(gathered.Deregister(), r.device.FreeMemory(buffer))
				})
			})
		}
	}
}

// registered is memory that a card can read.
func (r *rank) registered(n int) ([]byte, verbs.MemoryRegion, error) {
	memory, err := r.device.AllocateMemory(n)
	if err != nil {
		return nil, nil, err
	}
	region, err := r.device.RegisterMemory(memory, 0)
	return memory, region, err
}

func TestOptions(t *testing.T) {
	for _, wrong := range []channel.Options{
		{EagerMessages: 1}, {EagerMessages: 129}, {MaxMessage: -1}, {MaxSends: 7}, {MaxSends: 1 << 15}, {Ring: channel.Config{Buffers: 1}},
	} {
		rigs[1].run(t, channel.Options{}, func(r *rank) error {
			_, err := channel.NewPoller(r.device, wrong)
			if err == nil {
				return fmt.Errorf("%+v were taken", wrong)
			}
			if err := r.end.Send(nil); err == nil {
				return errors.New("a message without payload was sent")
			}
			return nil
		})
	}
}

// BenchmarkPingPong is there and back, one message at a time; in virtual time it is what simulating
// that takes.
func BenchmarkPingPong(b *testing.B) {
	for _, rig := range rigs {
		for name, options := range map[string]channel.Options{"rings": {WithoutPipes: true}, "pipes": {}, "eager": {Budget: -1}} {
			b.Run(rig.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				rig.run(b, options, func(r *rank) error {
					payload := make([]byte, 64)
					receive := func() error {
						for r.Poll(r.into[:1]) == 0 {
							r.pause()
						}
						r.end.Release(&r.into[0])
						return r.into[0].Err
					}
					for i := range 2 * b.N {
						var err error
						if i%2 == r.number {
							err = r.end.Send(payload)
						} else {
							err = receive()
						}
						if err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
	}
}

package channel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A half is one goroutine's of two that use a channel at once: either sends or receives.
type half struct {
	channel, peer *Channel
	// out and in carry the eager messages.
	out, in chan []byte
}

// send sends count numbered messages, by ring if there is room. It sends the stamps that the peer needs until all
// messages have arrived.
func (h *half) send(count uint64, over <-chan struct{}) error {
	var payload [wordBytes]byte
	sendEager := func(payload []byte) {
		message := make([]byte, StampBytes, StampBytes+len(payload))
		h.channel.StampEager(message)
		h.out <- append(message, payload...)
	}
	byRing := 0
	for i := uint64(0); ; {
		switch place := []byte(nil); {
		case h.channel.NeedsStamp():
			sendEager(nil)
		case i == count:
			select {
			case <-over:
				if byRing == 0 {
					return errors.New("no message went by ring")
				}
				return nil
			default:
				runtime.Gosched()
			}
		default:
			binary.NativeEndian.PutUint64(payload[:], i)
			if place = h.channel.Place(wordBytes); place == nil {
				if byRing == 0 && i == count/2 {
					// The peer offers its ring when its turn comes.
					runtime.Gosched()
					continue
				}
				sendEager(payload[:])
			} else {
				copy(place, payload[:])
				h.write(h.channel.Seal(wordBytes))
				byRing++
			}
			i++
		}
	}
}

// write is what a device does that places bytes in any order.
func (h *half) write(w Write) {
	from, to := h.channel.out.memory, h.peer.in.memory
	copy(to[w.Offset:w.Offset+w.Length], from[w.Offset:])
	word(to, w.Flag).Store(binary.NativeEndian.Uint64(from[w.Flag:]))
}

// receive takes count messages, and frees each when the next has come.
func (h *half) receive(count uint64) error {
	var before Message
	next := uint64(0)
	take := func(payload []byte) error {
		if i := binary.NativeEndian.Uint64(payload); i != next {
			return fmt.Errorf("message %d in the place of %d", i, next)
		}
		next++
		return nil
	}
	poll := func() (some bool, err error) {
		m, some, err := h.channel.Poll()
		if !some {
			return false, err
		}
		if before.span > 0 {
			h.channel.Free(before)
		}
		before = m
		return true, take(m.Payload)
	}
	for next < count {
		some, err := poll()
		if err != nil {
			return err
		}
		if some {
			continue
		}
		select {
		case message := <-h.in:
			isNext := false
			for !isNext && err == nil {
				if isNext, err = h.channel.TakeEager(message); !isNext && err == nil {
					_, err = poll()
				}
			}
			if err == nil && len(message) > StampBytes {
				err = take(message[StampBytes:])
			}
			if err != nil {
				return err
			}
		default:
			runtime.Gosched()
		}
	}
	return nil
}

// TestHalves is one for the race detector: both halves of both ends of a connection, each
// by a goroutine of its own.
func TestHalves(t *testing.T) {
	const count = 20_000
	config := Config{Buffers: 4, BufferBytes: 64, MaxMessage: 64}
	x, y := New(Traits{}), New(Traits{})
	for _, pair := range [][2]*Channel{{x, y}, {y, x}} {
		require.NoError(t, pair[0].Own(config, aligned(config.Bytes())))
		require.NoError(t, pair[1].Lend(config, aligned(config.Bytes())))
		pair[0].SetPolled(true)
	}
	toX, toY := make(chan []byte, 64), make(chan []byte, 64)
	received, over, ended := make(chan error), make(chan struct{}), make(chan error)
	for _, h := range []*half{{x, y, toY, toX}, {y, x, toX, toY}} {
		go func() { received <- h.receive(count) }()
		go func() { ended <- h.send(count, over) }()
	}
	require.NoError(t, errors.Join(<-received, <-received))
	close(over)
	require.NoError(t, errors.Join(<-ended, <-ended))
}

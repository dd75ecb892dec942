package tcp

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// bareDevice is a device without a socket, for connections over a script.
func bareDevice() *device {
	d := &device{opened: time.Now(), silence: time.Hour, pairs: make(map[uint32]*queuePair)}
	d.regions.byKey = make(map[uint32]*region)
	d.table.Store(new([]*connection))
	d.overdue = time.AfterFunc(time.Hour, d.flushAcknowledgements) // computes
	d.awaited.Store(true)                                          // and never done: nothing moves but by the test
	d.channel.device = d
	return d
}

// script is a stream whose peer says what the test wrote before, in pieces.
type script struct {
	feed []byte
	// piece is the most bytes of one read, 0 for any.
	piece  int
	ended  bool
	spoken []byte
	// full makes no output go, room bounds what goes in all, 0 does not.
	full   bool
	room   int
	closed bool
	// reads counts the calls that asked for input, writes those that sent something.
	reads, writes int
}

func (s *script) read(into []byte) (int, error) { return s.readv([][]byte{into}) }

func (s *script) readv(into [][]byte) (total int, err error) {
	s.reads++
	limit := len(s.feed)
	if s.piece > 0 {
		limit = min(limit, s.piece)
	}
	if limit == 0 && s.ended {
		return 0, io.EOF
	}
	for _, part := range into {
		n := copy(part, s.feed[:limit])
		s.feed, limit, total = s.feed[n:], limit-n, total+n
	}
	return total, nil
}

func (s *script) writev(from [][]byte) (total int, err error) {
	if s.full {
		return 0, nil
	}
	for _, part := range from {
		if s.room > 0 {
			part = part[:min(len(part), s.room-len(s.spoken))]
		}
		s.spoken = append(s.spoken, part...)
		total += len(part)
	}
	if total > 0 {
		s.writes++
	}
	return total, nil
}

func (s *script) pending() bool   { return false }
func (s *script) end()            {}
func (s *script) close()          { s.closed = true }
func (s *script) descriptor() int { return -1 }

// said takes the headers of what this side has said, payloads skipped.
func (s *script) said(t testing.TB) []frame {
	t.Helper()
	var all []frame
	for len(s.spoken) > 0 {
		f, _ := s.next(t)
		all = append(all, f)
	}
	return all
}

// next takes the first frame of what this side has said.
func (s *script) next(t testing.TB) (f frame, payload []byte) {
	t.Helper()
	size, err := f.decode(s.spoken)
	require.NoError(t, err)
	require.NotZero(t, size, "%d bytes of a header", len(s.spoken))
	end := size + int(f.length)
	payload, s.spoken = s.spoken[size:end], s.spoken[end:]
	return f, payload
}

// hear makes the connection take what the peer says, until there is no more.
func (c *connection) hear(s *script, said ...[]byte) {
	for _, message := range said {
		s.feed = append(s.feed, message...)
	}
	c.visit()
	for len(s.feed) > 0 && !s.closed {
		c.visit()
	}
}

// message is a frame with its payload.
func message(f frame, payload string) []byte {
	f.length = uint32(len(payload))
	header := make([]byte, f.size())
	f.encode(header)
	return append(header, payload...)
}

// bare is a connection that is made, over a script.
type bare struct {
	*script
	*connection
	device *device
	queue  *completionQueue
}

func newBare(t testing.TB) *bare {
	t.Helper()
	return newBareOf(t, 1024)
}

// newBareOf is one with that many completions at most.
func newBareOf(t testing.TB, capacity int) *bare {
	t.Helper()
	d := bareDevice()
	queue, err := d.CreateCompletionQueue(capacity)
	require.NoError(t, err)
	return newBareOn(t, d, verbs.QueuePairConfig{SendQueue: queue, ReceiveQueue: queue})
}

// newBareOn is one of a device, by a configuration with one queue for both.
func newBareOn(t testing.TB, d *device, config verbs.QueuePairConfig) *bare {
	t.Helper()
	b := newAwaiting(t, d, config)
	b.hear(b.script, message(frame{kind: kindAccept}, ""))
	require.Equal(t, verbs.StateReady, b.pair.State())
	return b
}

// newAwaiting is one whose peer has not responded to the hello.
func newAwaiting(t testing.TB, d *device, config verbs.QueuePairConfig) *bare {
	t.Helper()
	b := &bare{script: new(script), connection: newConnection(d, "peer", phaseDialing), device: d, queue: config.SendQueue.(*completionQueue)}
	var err error
	b.pair, err = d.newPair(config, b.connection)
	require.NoError(t, err)
	b.connection.mu.Lock()
	b.start(b.script, phaseAwaiting)
	b.connection.mu.Unlock()
	return b
}

// region registers memory under a key that the test chose.
func (b *bare) region(memory []byte, key uint32, access verbs.Access) *region {
	r := newRegion(b.device, memory, access)
	r.key = key
	b.device.regions.byKey[key] = r
	return r
}

// completions takes what has completed.
func (b *bare) completions() []verbs.Completion {
	into := make([]verbs.Completion, 1024)
	return into[:b.queue.Poll(into)]
}

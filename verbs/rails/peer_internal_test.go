package rails

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/internal/bounds"
	"github.com/onesided/rma/internal/completion"
	"github.com/onesided/rma/verbs"
)

// A wire is a queue pair of a rail that keeps what is posted.
type wire struct {
	sent     []verbs.SendRequest
	messages [][]byte
	receives []verbs.ReceiveRequest
	severed  bool
}

func (w *wire) Number() uint32 { return 1 }
func (w *wire) Err() error     { return nil }
func (w *wire) Close() error   { return nil }
func (w *wire) Sever()         { w.severed = true }

func (w *wire) State() verbs.State {
	if w.severed {
		return verbs.StateError
	}
	return verbs.StateReady
}

func (w *wire) PostSend(requests []verbs.SendRequest) (int, error) {
	for _, r := range requests {
		w.sent = append(w.sent, r)
		w.messages = append(w.messages, bytes.Clone(r.Segments[0].Memory))
	}
	return len(requests), nil
}

func (w *wire) PostReceive(requests []verbs.ReceiveRequest) (int, error) {
	for _, r := range requests {
		r.Segments = append([]verbs.Segment(nil), r.Segments...)
		w.receives = append(w.receives, r)
	}
	return len(requests), nil
}

// A plain card registers memory and has a channel.
type plain struct {
	verbs.Device
	regions uint32
}

type plainRegion struct {
	key    uint32
	memory []byte
}

func (r plainRegion) LKey() uint32      { return r.key }
func (r plainRegion) Memory() []byte    { return r.memory }
func (r plainRegion) Deregister() error { return nil }
func (r plainRegion) Remote() verbs.RemoteRegion {
	return verbs.RemoteRegion{Address: uint64(r.key) << 20, Length: uint64(len(r.memory)), RKey: r.key}
}

func (p *plain) RegisterMemory(memory []byte, _ verbs.Access) (verbs.MemoryRegion, error) {
	p.regions++
	return plainRegion{p.regions, memory}, nil
}

// ringless is the channel of nobody.
type ringless struct{ verbs.CompletionChannel }

func (ringless) Wake() {}

// between gives a queue pair between wires, and the one of rail 1.
func between(t testing.TB) (*queuePair, *wire) {
	d := &device{rails: []verbs.Device{new(plain), &plain{regions: 100}, &plain{regions: 200}}}
	d.regions.init()
	d.pairs.Store(new([]*queuePair))
	d.channel.first = ringless{}
	d.division = division{least: 128, each: 128, until: []float64{1. / 3, 2. / 3, 1}}
	d.attributes = verbs.Attributes{MaxSegments: 4, MaxMessage: 1 << 20}
	one := new(wire)
	completed, err := completion.New(16)
	require.NoError(t, err)
	require.True(t, completion.Attach(completed, completed))
	queue := &completionQueue{railQueue{device: d}, completed}
	q := &queuePair{device: d, sends: queue, receives: queue, pairs: []verbs.QueuePair{new(wire), one, new(wire)}, numbers: []uint32{1, 1, 1}, records: make([]record, 16), ready: make([][]verbs.SendRequest, 3)}
	d.add(q)
	require.NoError(t, q.keys.open(q))
	return q, one
}

// say has the peer send bytes into the first receive.
func say(q *queuePair, w *wire, message []byte) (heard bool) {
	if len(w.receives) == 0 {
		return false
	}
	r := w.receives[0]
	w.receives = w.receives[1:]
	n := copy(r.Segments[0].Memory, message)
	q.completedOther(keyRail, &verbs.Completion{ID: r.ID, Opcode: verbs.OpReceive, Bytes: uint32(n)})
	return true
}

// leave completes what was sent.
func leave(q *queuePair, w *wire) {
	for len(w.sent) > 0 {
		r := w.sent[0]
		w.sent = w.sent[1:]
		q.completedOther(keyRail, &verbs.Completion{ID: r.ID, Opcode: r.Opcode})
	}
}

func encoded(m message) []byte {
	b := make([]byte, messageBytes)
	return b[:m.encode(b)]
}

// Messages that package rails never sends end the queue pair, and say what was wrong.
func TestBrokenMessages(t *testing.T) {
	long := func(kind messageKind, count byte, n int) []byte {
		b := make([]byte, n)
		b[0], b[1] = byte(kind), count
		return b
	}
	wraps := encoded(message{kind: request, key: 1, address: ^uint64(0), length: 2})
	stray := encoded(message{kind: forget})
	stray[3] = 1
	for what, c := range map[string]struct {
		message []byte
		says    string
	}{
		"nothing":                   {nil, "a message of 0 bytes; the shortest has 8"},
		"seven bytes":               {make([]byte, 7), "a message of 7 bytes"},
		"no kind":                   {make([]byte, 8), "a message of kind 0; allowed are 1 to 4"},
		"an unknown kind":           {long(5, 0, 8), "a message of kind 5"},
		"a short request":           {long(request, 0, 8), "has 8 bytes; it has to have 24"},
		"a long forget":             {long(forget, 0, 24), "has 24 bytes; it has to have 8"},
		"places in a request":       {long(request, 2, 48), "allowed are none"},
		"places of another number":  {long(response, 1, 36), "in a response 2"},
		"places that are not there": {long(response, 2, 24), "it has to have 48"},
		"a stray byte":              {stray, "third and fourth byte"},
		"a range that wraps":        {wraps, "beyond the last address"},
		"a response to nothing":     {encoded(message{kind: response, key: 5}), "for key 0x5, which was not requested"},
		"what is forgotten unasked": {encoded(message{kind: forgotten, key: 5}), "for key 0x5, which was not requested"},
	} {
		t.Run(what, func(t *testing.T) {
			q, w := between(t)
			require.True(t, say(q, w, c.message))
			require.ErrorIs(t, q.Err(), ErrProtocol)
			require.ErrorContains(t, q.Err(), c.says)
			require.Equal(t, verbs.StateError, q.State())
			require.True(t, w.severed)
		})
	}
}

// A response about another region than was requested is not taken.
func TestResponseAboutAnother(t *testing.T) {
	q, w := between(t)
	requestKeys(q, 7, 1000, 500)
	require.True(t, say(q, w, encoded(message{kind: response, key: 7, address: 1100, length: 4000, count: 2})))
	require.ErrorIs(t, q.Err(), ErrProtocol)
	require.ErrorContains(t, q.Err(), "the request was for 500 at 0x3e8")
}

func requestKeys(q *queuePair, key uint32, address uint64, length int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.keys.find(q, &verbs.SendRequest{Opcode: verbs.OpRDMAWrite, RKey: key, RemoteAddress: address}, length)
}

// Whoever names no address of a region with remote rights by its key gets a response without a region.
func TestKeyRequests(t *testing.T) {
	q, w := between(t)
	open, err := q.device.RegisterMemory(make([]byte, 1000), verbs.RemoteRead)
	require.NoError(t, err)
	shut, err := q.device.RegisterMemory(make([]byte, 1000), verbs.LocalWrite)
	require.NoError(t, err)
	at, other := open.Remote(), shut.Remote()
	for what, c := range map[string]struct {
		key             uint32
		address, length uint64
		places          int
	}{
		"the region":              {at.RKey, at.Address, 1000, 2},
		"a part":                  {at.RKey, at.Address + 999, 1, 2},
		"another key":             {at.RKey + 77, at.Address, 1000, 0},
		"one byte more":           {at.RKey, at.Address, 1001, 0},
		"an address before":       {at.RKey, at.Address - 1, 1, 0},
		"a region of no one else": {other.RKey, other.Address, 1, 0},
	} {
		w.messages = nil
		require.True(t, say(q, w, encoded(message{kind: request, key: c.key, address: c.address, length: c.length})))
		require.NoError(t, q.Err())
		require.Len(t, w.messages, 1, what)
		var m message
		require.NoError(t, m.decode(w.messages[0], 3))
		require.Equal(t, c.places, m.count, what)
		if m.count > 0 {
			require.Equal(t, message{kind: response, key: at.RKey, address: at.Address, length: at.Length, count: 2, places: m.places}, m)
			for i := range m.places[:2] {
				r := open.(*region).rails[i+1].Remote()
				require.Equal(t, place{r.Address, r.RKey}, m.places[i])
			}
		}
		leave(q, w)
	}
}

// A peer that requests without end and never confirms holds what is bounded.
func TestPeerThatNeverForgets(t *testing.T) {
	q, w := between(t)
	for range 2 * maxAdvertised {
		r, err := q.device.RegisterMemory(make([]byte, 8), verbs.RemoteRead)
		require.NoError(t, err)
		at := r.Remote()
		require.True(t, say(q, w, encoded(message{kind: request, key: at.RKey, address: at.Address, length: 8})))
		leave(q, w)
		require.NoError(t, r.Deregister())
		leave(q, w)
	}
	require.NoError(t, q.Err())
	require.LessOrEqual(t, len(q.keys.later)+len(q.keys.advertised), maxAdvertised)
	require.LessOrEqual(t, len(q.device.regions.old), maxAdvertised)
	require.NoError(t, q.Close())
	require.Empty(t, q.device.regions.old)
	require.Zero(t, q.device.onOthers.Load())
}

// mostAllocated is what may be allocated for each step of FuzzPeer, and for 16 more by other goroutines of the process.
const mostAllocated = 16 << 10

// FuzzPeer has a peer say anything, in any order with what this side does.
func FuzzPeer(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, encoded(message{kind: request, key: 1, address: 1 << 20, length: 8}))
	f.Add([]byte{0, 0, 1, 2, 3, 3}, encoded(message{kind: response, key: 3, address: 0, length: 1 << 40, count: 2}))
	f.Add([]byte{4, 3, 0, 3, 2, 3}, encoded(message{kind: forgotten, key: 1}))
	f.Add([]byte{1, 3, 0, 3, 5, 0}, encoded(message{kind: forget, key: 3}))
	f.Fuzz(func(t *testing.T, does, says []byte) {
		q, w := between(t)
		memory := make([]byte, 4096)
		var regions []verbs.MemoryRegion
		step := func(do byte) {
			switch do % 6 {
			case 0:
				n := min(len(says), messageBytes, 8+int(do)/6)
				say(q, w, says[:n])
				says = says[n:]
			case 1:
				requestKeys(q, uint32(do)/6, uint64(do)<<4, 256)
			case 2:
				leave(q, w)
			case 3:
				r, err := q.device.RegisterMemory(memory, verbs.RemoteWrite)
				require.NoError(t, err)
				regions = append(regions, r)
				at := r.Remote()
				say(q, w, encoded(message{kind: request, key: at.RKey, address: at.Address, length: 1}))
			case 4:
				if len(regions) > 0 {
					require.NoError(t, regions[0].Deregister())
					regions = regions[1:]
				}
			case 5:
				say(q, w, encoded(message{kind: messageKind(do / 6), key: uint32(do) / 12}))
			}
			if err := q.Err(); err != nil {
				require.True(t, errors.Is(err, ErrProtocol), err)
			}
			require.LessOrEqual(t, len(w.receives), keyReceives)
			for _, k := range q.keys.known {
				require.True(t, !k.responded || k.length > 0 && bounds.Contains(k.address, k.length, k.address, k.length))
			}
		}
		allocated := allocs.Of(func() {
			for _, do := range does {
				step(do)
			}
		})
		require.LessOrEqual(t, allocated, (16+len(does))*mostAllocated)
		leave(q, w)
		require.NoError(t, q.Close())
		require.Empty(t, q.device.regions.old)
		require.Zero(t, q.device.onOthers.Load())
	})
}

// FuzzMessage reads what a peer may send: what is taken is written again as it was.
func FuzzMessage(f *testing.F) {
	f.Add(encoded(message{kind: request, key: 1, address: 2, length: 3}), 2)
	f.Add(encoded(message{kind: response, key: 1, address: 2, length: 3, count: 3}), 4)
	f.Add(encoded(message{kind: forget, key: 9}), 2)
	f.Fuzz(func(t *testing.T, b []byte, rails int) {
		var m message
		if rails < 2 || rails > maxRails {
			return
		}
		allocs.AtMost(t, 2<<10, func() { _ = m.decode(b, rails) })
		if m.decode(b, rails) != nil {
			return
		}
		require.Equal(t, b, encoded(m))
	})
}

// FuzzHello reads what a peer may say first.
func FuzzHello(f *testing.F) {
	f.Add(hello(0, 2, token{1}, []byte("user")), 0)
	f.Add(hello(1, 3, token{1}, bytes.Repeat([]byte{7}, verbs.MaxHello)), 1)
	f.Fuzz(func(t *testing.T, b []byte, rail int) {
		if rail < 0 || rail >= 3 {
			return
		}
		allocs.AtMost(t, 2<<10, func() { _, _, _ = parseHello(b, rail, 3) })
		tied, part, err := parseHello(b, rail, 3)
		if err != nil {
			require.ErrorIs(t, err, ErrProtocol)
			return
		}
		require.Equal(t, b, append(append([]byte{version, 3, byte(rail)}, tied[:]...), part...))
	})
}

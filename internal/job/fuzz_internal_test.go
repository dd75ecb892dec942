package job

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/internal/progress"
	"github.com/onesided/rma/verbs"
)

// What an exchange gives in the place of an introduction is one, or an error.
func FuzzIntroduction(f *testing.F) {
	f.Add((&introduction{rank: 1, terms: "protocol version x;RMA_DEVICE=tcp", machine: "linux/1", net: "net:[1]", host: "linux/1/net:[1]/pid:[1]/a", cores: 4, rdma: 2, bound: "0-3", all: 8}).text())
	f.Add((&introduction{rank: 0, machine: "m", cores: 1, key: "00ff"}).text())
	for _, text := range []string{"", protocol, "rma8;1;2;;;;;1;false;0;false;false;false;;;0", "1;;;;;1;0;;;0", "-1;;;;;1;0;;;0", "x;;;;;1;0;;;0", "1;%zz;;;;1;0;;;0", "1;%00;;;;1;0;;;0", "1;;;;;0;0;;;0", "1;;;;;1;-1;;;0", "1;;;;;1;0;;;x", "declined;x"} {
		f.Add(protocol + ";" + text)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, rest, _ := strings.Cut(text, ";")
		allocs.AtMost(t, 2<<10+16*len(text), func() { _, _ = parseIntroduction(rest) })
		i, err := parseIntroduction(rest)
		if err != nil {
			require.ErrorIs(t, err, errContact)
		} else {
			again, err := parseIntroduction(strings.TrimPrefix(i.text(), protocol+";"))
			require.NoError(t, err)
			require.Equal(t, i, again)
			require.Positive(t, i.cores)
		}
		mine := introduction{rank: 0, cores: 1}
		ranks, err := introductions(t.Context(), func(_ context.Context, mine string) ([]string, error) { return []string{mine, text}, nil }, 2, mine)
		if err == nil {
			require.Equal(t, []introduction{mine, i}, ranks)
			require.Equal(t, 1, i.rank)
			_ = mine.apart(&i)
		}
	})
}

// What an exchange gives in the place of a contact is one, or an error.
func FuzzContact(f *testing.F) {
	c := contact{addresses: [cardKinds]string{"shm-1", "127.0.0.1:7"}, block: Places{{Address: 1, Length: 2, RKey: 3}, {Address: 1<<64 - 1, Length: 1 << 40, RKey: 1<<32 - 1}}}
	f.Add(c.text())
	for _, text := range []string{"", ";", "shm;;0;0;0;", "network;x;0;0;100000000;", "network;x;-1;0;0;", "network;;0;0;0;0;0;1;", "shm;s;1;1;1;1;1;1;shm;;0;0;0;0;0;0;", "verbs;x;y;z;0;shm;a;1;1;1", "shm;a;1;1;1;shm;b;2;2;2;", "shm;a;1;1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		allocs.AtMost(t, 2<<10+16*len(text), func() { _, _ = parseContact(text) })
		c, err := parseContact(text)
		if err != nil {
			require.ErrorIs(t, err, errContact)
			return
		}
		if c == (contact{}) {
			return
		}
		again, err := parseContact(c.text())
		require.NoError(t, err)
		require.Equal(t, c, again)
	})
}

// A rank's text says that it cannot join, why, or nothing of the kind. Whatever it cannot
// join for fits into a text.
func FuzzDeclined(f *testing.F) {
	for _, text := range []string{"", "declined;", "declined;no+device", "declined;%zz", "declined;%", "Declined;x", "x y\nλ", string(bytes.Repeat([]byte("ό"), 500))} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		allocs.AtMost(t, 2<<10+4*len(text), func() { _ = declined([]string{"rma1;0;", text}) })
		err := declined([]string{"rma1;0;", text})
		var peer *PeerError
		switch {
		case !bytes.HasPrefix([]byte(text), []byte(declining)):
			require.NoError(t, err)
		case !errors.As(err, &peer):
			require.ErrorIs(t, err, errContact)
		default:
			require.Equal(t, 1, peer.Rank)
		}
		told := declinedText(errors.New(text))
		require.LessOrEqual(t, len(told), maxDeclining)
		for i := range len(told) {
			require.True(t, told[i] > ' ' && told[i] <= '~', "%q", told)
		}
		require.ErrorAs(t, declined([]string{told}), &peer)
		require.Zero(t, peer.Rank)
	})
}

// guarded is memory of n bytes, and a check that nothing beside it was written to.
func guarded(n int) (memory []byte, check func(t *testing.T)) {
	const margin, guard = 64, 0xa5
	all := bytes.Repeat([]byte{guard}, n+2*margin)
	return all[margin:][:n:n], func(t *testing.T) {
		t.Helper()
		require.Empty(t, bytes.Trim(all[:margin], "\xa5"))
		require.Empty(t, bytes.Trim(all[margin+n:], "\xa5"))
	}
}

// mostAllocated is what may be allocated beside what is for each byte that comes, by other goroutines of the process too.
const mostAllocated = 256 << 10

// Letters of any bytes and any length come in the place of a parcel's, before it is wanted or after.
// They are it, or an error; nothing beside its data is written.
func FuzzLetters(f *testing.F) {
	const size, length = 256, 500
	want := header{signature: signature{call: callBarrier, number: 3, element: 8}, length: length, history: 7}
	right := make([]byte, size)
	want.encode(right)
	f.Add(right, right, true)
	f.Add(right, right[:48], false)
	f.Add(right[:47], []byte{}, true)
	f.Add(right[:48], right, false)
	f.Add(make([]byte, size), []byte("letter"), false)
	f.Add(right, make([]byte, 1<<14), true)
	f.Fuzz(func(t *testing.T, first, second []byte, before bool) {
		data, check := guarded(length)
		w := &World{endpoint: &endpoint{linkLetter: 1024, engine: progress.New(progress.Config{})}, job: &job{}, size: 2, links: make([]atomic.Pointer[Link], 2)}
		o := &w.post
		o.open(w)
		p := &parcel{rank: 1, header: want, data: data, active: true}
		from := &Link{world: w, rank: 1}
		if !before {
			_, _, err := o.collect(p)
			require.NoError(t, err)
		}
		require.LessOrEqual(t, allocs.Of(func() {
			for _, letter := range [][]byte{first, second} {
				if err := o.mailed(from, letter); err != nil {
					require.ErrorIs(t, err, ErrMessage)
					break
				}
			}
		}), mostAllocated+2*(len(first)+len(second)))
		if _, _, err := o.collect(p); err != nil {
			var stray *strayError
			var broken *boxError
			require.True(t, errors.As(err, &stray) || errors.As(err, &broken), "%v", err)
		}
		require.LessOrEqual(t, p.done, length)
		check(t)
	})
}

// A rank may say that any number of bytes was taken. It is one that was sent, or an error.
func FuzzMailTaken(f *testing.F) {
	f.Add(uint64(100), uint64(100))
	f.Add(uint64(100), uint64(101))
	f.Add(uint64(0), uint64(1<<63))
	f.Fuzz(func(t *testing.T, first, second uint64) {
		o, l := &office{boxes: map[int]*mailbox{1: {sent: 100}}}, &Link{rank: 1}
		allocs.AtMost(t, 2<<10, func() {
			o.boxes[1].taken = 0
			_, _ = o.mailTaken(l, first), o.mailTaken(l, second)
		})
		o.boxes[1].taken = 0
		for _, taken := range []uint64{first, second} {
			if err := o.mailTaken(l, taken); err != nil {
				require.ErrorIs(t, err, ErrMessage)
				break
			}
			require.LessOrEqual(t, o.boxes[1].taken, uint64(100))
		}
	})
}

// caller is a connection request that only notes what becomes of it.
type caller struct {
	hello              []byte
	accepted, rejected bool
}

var errNoPair = errors.New("there is no queue pair for this")

func (c *caller) Hello() []byte { return c.hello }
func (c *caller) Accept(verbs.QueuePairConfig) (verbs.QueuePair, error) {
	c.accepted = true
	return nil, errNoPair
}
func (c *caller) Reject(string) { c.rejected = true }

// quiet are two ranks that make no progress of their own, over links.
func quiet(t testing.TB, options ...Option) []*World { return quietRanks(t, 2, options...) }

// quietRanks is quiet with n ranks.
func quietRanks(t testing.TB, n int, options ...Option) []*World {
	t.Helper()
	s, err := newSettings(append(apart(), options...))
	require.NoError(t, err)
	worlds, err := localWorlds(t.Context(), n, s)
	require.NoError(t, err)
	for _, w := range worlds {
		w.engine.Close()
	}
	t.Cleanup(func() {
		for _, w := range worlds {
			require.NoError(t, w.depart())
		}
	})
	return worlds
}

// A connection is made for a hello that names another rank of the job, and for no other.
func FuzzHello(f *testing.F) {
	f.Add(hello(laneLink, 0, 0))
	f.Add(hello(laneLink, 1, 0))
	f.Add(hello(laneLink, 2, 0))
	f.Add(hello(laneLink+1, 1, 0))
	f.Add(hello(laneLink, -1, 0))
	f.Add(hello(laneLink, 1, 1))
	f.Add([]byte{})
	f.Add([]byte{laneLink, 0, 0, 0, 0, 0})
	w := quiet(f)[0]
	f.Fuzz(func(t *testing.T, hello []byte) {
		c := &caller{hello: hello}
		require.LessOrEqual(t, allocs.Of(func() {
			w.engine.Lock()
			w.accept(w.cards[networkCard], c)
			w.engine.Unlock()
		}), mostAllocated+linkReceives*longestLinkLetter)
		ofAnother := len(hello) == helloBytes && hello[0] <= laneLink && binary.LittleEndian.Uint64(hello[1:]) == 1
		require.Equal(t, ofAnother, c.accepted)
		require.True(t, c.rejected)
	})
}

// sent is a script of letters as FuzzLink reads it: each behind its length.
func sent(letters ...[]byte) (script []byte) {
	for _, letter := range letters {
		script = append(append(script, byte(len(letter))), letter...)
	}
	return script
}

// message is one with a payload.
func message(m Message, payload string) []byte {
	_, header := m.layout()
	text := make([]byte, header+padded(len(payload)))
	m.encode(text, []byte(payload))
	return text
}

// A rank sends anything over a link: messages that keep no rules end it, and nothing is
// written but what is asked for. The World's calls go on to say so.
func FuzzLink(f *testing.F) {
	for kind := range FirstKind + 3 {
		f.Add(sent(message(Message{Kind: kind}, ""), message(Message{Kind: kind, A: 1, Service: 7, X: 1, Y: 1, Z: 1, question: true}, "payload")))
	}
	const most = 1<<64 - 1
	for kind := range FirstKind + 3 {
		f.Add(sent(message(Message{Kind: kind, A: 255, B: 255, Service: 1<<32 - 1, X: most, Y: most, Z: most}, "payload of several words")))
	}
	f.Add(sent(message(Message{Kind: kindAnswer}, "answered"), message(Message{Kind: kindRefusal}, "refused"), message(Message{Kind: kindAnswer}, "")))
	f.Add(sent(message(Message{Kind: kindSurvivor}, "a"), message(Message{Kind: kindSurvivor, X: 1}, "b"), message(Message{Kind: kindSurvivors, X: 2}, ""), message(Message{Kind: kindInquire}, "")))
	f.Add(sent(message(Message{Kind: kindFailed, X: 1 << 63}, "x"), message(Message{Kind: kindVerdict, X: 1 << 32, Y: 2}, "y")))
	f.Add(sent(message(Message{Kind: kindArrive, A: MostCalls - 1, X: 1, Y: 2, Z: 3}, ""), message(Message{Kind: kindRound, A: 63, X: 1}, "")))
	f.Add(sent([]byte("short"), nil))
	f.Add(sent(slices.Concat(message(Message{Kind: kindFlush, question: true}, ""), message(Message{Kind: FirstKind, Service: 7}, "one"), message(Message{Kind: kindNothing}, ""))))
	f.Fuzz(func(t *testing.T, script []byte) {
		w := quiet(t)[0]
		stop := w.Serve(7, &echo{})
		defer stop()
		l, err := w.Link(1)
		require.NoError(t, err)
		asked, check := guarded(8)
		l.mu.Lock()
		l.expect(asked)
		l.expect(nil)
		l.mu.Unlock()
		most := mostAllocated + 64*len(script)
		require.LessOrEqual(t, allocs.Of(func() {
			for len(script) > 0 && err == nil {
				n := min(int(script[0]), len(script)-1)
				// Nothing is behind a letter that could be read with it.
				memory := bytes.Clone(script[1:][:n:n])
				script = script[1+n:]
				w.engine.Lock()
				err = l.serveEach(&arrival{memory: memory})
				w.engine.Unlock()
				clear(memory)
			}
		}), most)
		if err != nil {
			require.ErrorIs(t, err, ErrMessage)
			l.fail(err)
			require.Error(t, l.fault())
		}
		check(t)
		for at, b := range w.block[:2*MeetingBytes] {
			callers := at%MeetingBytes/lineBytes == arrivedLine
			if at%lineBytes >= 24 && b != 0 && !callers {
				t.Fatalf("byte %d of the flags, which is none, is %d", at, b)
			}
		}
		ended, end := context.WithCancel(t.Context())
		end()
		require.Error(t, w.Barrier(ended))
	})
}

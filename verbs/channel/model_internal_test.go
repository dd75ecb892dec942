package channel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A model is two channels and all that is between them: here sends messages to there, which
// sends it stamps by eager messages. explore goes through all states that it can come to, so the
// sizes are small. A write that is under way takes each byte from the sender's memory when it
// is placed, as late as a card may.
type model struct {
	rules
	here, there *Channel
	// wire is what is under way from here, arrived the eager messages that have come to there and
	// were not taken; back those that are under way to here.
	wire          []crossing
	arrived, back [][]byte
	// sent are the kinds of the messages that were, got how many have been taken; held are
	// those of them that were not freed.
	sent []kind
	got  int
	held []taken
	// changes is how often the ring was joined or left, volunteered how often a stamp was
	// sent that was not needed.
	changes, volunteered int
}

// rules are what is modelled.
type rules struct {
	config   Config
	traits   Traits
	messages int
	kinds    []kind
	// mostChanges is how often the ring is joined or left, volunteers how often there sends
	// what it need not.
	mostChanges, volunteers int
	// backwards: a write may be placed from its end, too.
	backwards bool
	mutant    mutant
}

// A kind of message.
type kind uint8

const (
	short kind = iota
	long
	gathered
)

// A mutant is a rule that is left out.
type mutant uint8

const (
	sound mutant = iota
	oneFlag
	creditTooMany
	sequenceIgnored
	headsNotCleared
	gatherForgotten
)

// A crossing is a write or an eager message under way, of a message of a number.
type crossing struct {
	message int
	eager   []byte
	// A write of length bytes at an offset, of which front and back are placed. What is
	// elsewhere is gathered, at an offset within.
	offset, length, front, back int
	elsewhere                   []byte
	elsewhereAt                 int
}

type taken struct {
	Message
	number int
}

// payload of a message: its number, and in a long one what is in the place of the tail word
// of a short one, and looks like it.
func payload(number int, k kind) []byte {
	p := binary.LittleEndian.AppendUint64(nil, uint64(number)|0x7700)
	if k != short {
		p = binary.LittleEndian.AppendUint64(p, headWord(wordBytes, flagOne))
	}
	return p
}

func newModel(r rules) *model {
	m := &model{rules: r, here: New(r.traits), there: New(r.traits)}
	must(m.there.Own(r.config, aligned(r.config.Bytes())))
	must(m.here.Lend(r.config, aligned(r.config.Bytes())))
	m.there.SetPolled(true)
	message := make([]byte, StampBytes)
	m.there.StampEager(message)
	if next, err := m.here.TakeEager(message); !next || err != nil {
		panic(fmt.Sprint("the first eager message: ", next, err))
	}
	return m
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// aligned is memory of whole words.
func aligned(n int) []byte { return make([]byte, n, max(n, 64)) }

func (c *Channel) clone() *Channel {
	d := &Channel{out: c.out, in: c.in}
	d.out.memory, d.out.differing = bytes.Clone(c.out.memory), slices.Clone(c.out.differing)
	d.in.memory, d.in.freed = bytes.Clone(c.in.memory), slices.Clone(c.in.freed)
	if d.in.memory != nil {
		d.in.head = word(d.in.memory, d.in.next*d.in.config.BufferBytes)
	}
	d.buffers.Store(c.buffers.Load())
	d.used.Store(c.used.Load())
	d.peerStamp.Store(c.peerStamp.Load())
	d.owed.Store(c.owed.Load())
	return d
}

func (m *model) clone() *model {
	n := *m
	n.here, n.there = m.here.clone(), m.there.clone()
	n.wire, n.arrived, n.back = slices.Clone(m.wire), slices.Clone(m.arrived), slices.Clone(m.back)
	n.sent, n.held = slices.Clone(m.sent), slices.Clone(m.held)
	for i := range n.held {
		h := &n.held[i]
		at := int(h.buffer)*m.config.BufferBytes + headBytes
		h.Payload = n.there.in.memory[at : at+len(h.Payload)]
	}
	return &n
}

// key is what tells a state from others.
func (m *model) key(into []byte) []byte {
	number := func(values ...int) {
		for _, v := range values {
			into = binary.AppendVarint(into, int64(v))
		}
	}
	for _, c := range []*Channel{m.here, m.there} {
		o, in := &c.out, &c.in
		into = append(append(into, o.memory...), in.memory...)
		number(o.next, int(o.sequence), int(o.lastStamp), int(o.left), in.next, int(in.expected), in.tail, int(c.used.Load()), int(c.peerStamp.Load()), int(c.owed.Load()))
		for _, b := range o.differing {
			number(int(b.from), int(b.to))
		}
		for _, f := range in.freed {
			number(int(f))
		}
		if in.listens {
			number(1)
		}
	}
	number(-1, m.got, m.changes, m.volunteered, len(m.sent), len(m.wire), len(m.arrived), len(m.back), len(m.held))
	for _, k := range m.sent {
		number(int(k))
	}
	for _, w := range m.wire {
		number(w.message, w.offset, w.length, w.front, w.back)
		into = append(into, w.eager...)
	}
	for _, l := range append(slices.Clone(m.arrived), m.back...) {
		number(len(l))
		into = append(into, l...)
	}
	for _, h := range m.held {
		number(h.number)
	}
	return into
}

// send sends a message by ring if that has room, or as an eager message.
func (m *model) send(k kind) {
	number := len(m.sent)
	m.sent = append(m.sent, k)
	content := payload(number, k)
	stored, elsewhere := content, []byte(nil)
	if k == gathered {
		stored, elsewhere = content[:wordBytes], content[wordBytes:]
	}
	place := m.here.Place(len(content))
	if place == nil {
		message := make([]byte, StampBytes)
		m.here.StampEager(message)
		m.wire = append(m.wire, crossing{message: number, eager: append(message, content...)})
		return
	}
	copy(place, stored)
	w := m.here.SealGathered(len(content), len(elsewhere))
	m.mutate(w)
	m.wire = append(m.wire, crossing{message: number, offset: w.Offset, length: w.Length, elsewhere: elsewhere, elsewhereAt: w.GapAt})
	if w.Flagged {
		m.wire = append(m.wire, crossing{message: number, offset: w.Flag, length: FlagBytes})
	}
}

// mutate breaks a rule of the sender's.
func (m *model) mutate(w Write) {
	o := &m.here.out
	if m.mutant == oneFlag && !w.Flagged {
		o.memory[w.Offset+flagShift/8], o.memory[w.Offset+w.Length-1] = byte(flagOne), byte(flagOne)
	}
	if m.mutant == gatherForgotten {
		clear(o.differing)
	}
}

// place places a byte of the write that is first on the wire, or brings an eager message.
func (m *model) place(backwards bool) {
	w := &m.wire[0]
	if w.eager != nil {
		m.arrived = append(m.arrived, w.eager)
		m.wire = m.wire[1:]
		return
	}
	n := 1
	if m.backwards && w.length == FlagBytes {
		n = FlagBytes
	}
	for range n {
		at := w.front
		if backwards {
			w.back++
			at = w.length - w.back
		} else {
			w.front++
		}
		b := m.here.out.memory[w.offset+at]
		if within := at - w.elsewhereAt; within >= 0 && within < len(w.elsewhere) {
			b = w.elsewhere[within]
		}
		m.there.in.memory[w.offset+at] = b
	}
	if w.front+w.back == w.length {
		m.wire = m.wire[1:]
	}
}

// poll takes a message from the ring.
func (m *model) poll() (some bool, err error) {
	in := &m.there.in
	if m.mutant == sequenceIgnored && in.head.Load() != 0 {
		binary.LittleEndian.PutUint32(in.memory[in.next*m.config.BufferBytes+wordBytes:], in.expected)
	}
	message, some, err := m.there.Poll()
	if err != nil || !some {
		return false, err
	}
	m.held = append(m.held, taken{message, m.got})
	for _, w := range m.wire {
		if w.message == m.got && w.eager == nil {
			return true, fmt.Errorf("message %d was taken before all of it had come", m.got)
		}
	}
	return true, m.take(message.Payload)
}

func (m *model) take(p []byte) error {
	if m.got == len(m.sent) {
		return fmt.Errorf("message %d, which was not sent, is %x", m.got, p)
	}
	if want := payload(m.got, m.sent[m.got]); !bytes.Equal(p, want) {
		return fmt.Errorf("message %d is %x; want %x", m.got, p, want)
	}
	m.got++
	return nil
}

// takeEager takes the first eager message that has come, and what has to be taken before.
func (m *model) takeEager() error {
	message := m.arrived[0]
	if m.mutant == sequenceIgnored {
		m.arrived = m.arrived[1:]
		m.there.in.expected++
		return m.take(message[StampBytes:])
	}
	for {
		next, err := m.there.TakeEager(message)
		if err != nil {
			return err
		}
		if next {
			break
		}
		if some, err := m.poll(); !some || err != nil {
			return fmt.Errorf("an eager message is not the next message, and the ring gives %t, %w", some, err)
		}
	}
	m.arrived = m.arrived[1:]
	if len(message) == StampBytes {
		return nil
	}
	return m.take(message[StampBytes:])
}

func (m *model) free(i int) error {
	h := m.held[i]
	if want := payload(h.number, m.sent[h.number]); !bytes.Equal(h.Payload, want) {
		return fmt.Errorf("message %d has become %x before it was freed", h.number, h.Payload)
	}
	second := m.there.in.memory[min(int(h.buffer+h.span), m.config.Buffers)*m.config.BufferBytes-m.config.BufferBytes:][:wordBytes]
	before := bytes.Clone(second)
	m.there.Free(h.Message)
	if m.mutant == headsNotCleared && h.span > 1 {
		copy(second, before)
	}
	m.held = slices.Delete(m.held, i, i+1)
	return nil
}

// stampFromThere has there send an eager message without payload.
func (m *model) stampFromThere() {
	message := make([]byte, StampBytes)
	m.there.StampEager(message)
	if m.mutant == creditTooMany && stamp(binary.LittleEndian.Uint64(message)).credits() > 0 {
		s := stamp(binary.LittleEndian.Uint64(message))
		binary.LittleEndian.PutUint64(message, uint64(s+1<<creditShift))
	}
	m.back = append(m.back, message)
}

// stampFromHere has here send an eager message without payload.
func (m *model) stampFromHere() {
	message := make([]byte, StampBytes)
	m.here.StampEager(message)
	m.wire = append(m.wire, crossing{message: -1, eager: message})
}

// takeAtHere has here take the first eager message that is under way to it.
func (m *model) takeAtHere() error {
	next, err := m.here.TakeEager(m.back[0])
	if err == nil && !next {
		err = errors.New("an eager message to here has to wait")
	}
	m.back = m.back[1:]
	return err
}

// each gives all states that come next, through visit, and reports whether there are any.
func (m *model) each(visit func(*model, error)) (some bool) {
	try := func(act func(n *model) error) {
		some = true
		n := m.clone()
		visit(n, act(n))
	}
	if len(m.sent) < m.messages {
		for _, k := range m.kinds {
			try(func(n *model) error { n.send(k); return nil })
		}
	}
	if len(m.wire) > 0 {
		try(func(n *model) error { n.place(false); return nil })
		if m.backwards && m.wire[0].eager == nil {
			try(func(n *model) error { n.place(true); return nil })
		}
	}
	if c := m.there; c.Polled() || c.Draining() {
		n := m.clone()
		if taken, err := n.poll(); taken || err != nil {
			some = true
			visit(n, err)
		}
	}
	if len(m.arrived) > 0 {
		try((*model).takeEager)
	}
	for i := range m.held {
		try(func(n *model) error { return n.free(i) })
	}
	if m.there.NeedsStamp() {
		try(func(n *model) error { n.stampFromThere(); return nil })
	} else if m.volunteered < m.volunteers && m.there.owed.Load() != uint64(m.there.out.lastStamp&^usesBit&^stamp(1<<creditShift-1)) {
		try(func(n *model) error { n.volunteered++; n.stampFromThere(); return nil })
	}
	if m.here.NeedsStamp() {
		try(func(n *model) error { n.stampFromHere(); return nil })
	}
	if len(m.back) > 0 {
		try((*model).takeAtHere)
	}
	if m.changes < m.mostChanges {
		try(func(n *model) error { n.changes++; n.there.SetPolled(!n.there.Polled()); return nil })
	}
	return some
}

var seed, otherSeed = maphash.MakeSeed(), maphash.MakeSeed()

// explore visits all states, and returns how many there are, or the first thing that is wrong.
func explore(r rules) (states int, err error) {
	seen := make(map[[2]uint64]bool)
	var key []byte
	stack := []*model{newModel(r)}
	for len(stack) > 0 && err == nil {
		m := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		some := m.each(func(n *model, wrong error) {
			if err = errors.Join(err, wrong); wrong != nil {
				return
			}
			key = n.key(key[:0])
			sum := [2]uint64{maphash.Bytes(seed, key), maphash.Bytes(otherSeed, key)}
			if !seen[sum] {
				seen[sum] = true
				stack = append(stack, n)
			}
		})
		if !some && (m.got < m.messages || len(m.wire) > 0) {
			err = fmt.Errorf("nothing goes on with %d of %d messages taken", m.got, m.messages)
		}
	}
	return len(seen), err
}

// small is a ring in which a long message takes two buffers of three, and can go over its end.
var small = Config{Buffers: 3, BufferBytes: grain, MaxMessage: 2 * wordBytes}

func TestModel(t *testing.T) {
	ordered := Traits{Ordered: true}
	for name, r := range map[string]rules{
		"ordered":    {traits: ordered, messages: 5, kinds: []kind{short, long}},
		"gathered":   {traits: ordered, messages: 4, kinds: []kind{short, gathered}, volunteers: 1},
		"unordered":  {backwards: true, messages: 4, kinds: []kind{short, long}, volunteers: 1},
		"membership": {traits: ordered, messages: 3, kinds: []kind{short}, mostChanges: 3},
	} {
		t.Run(name, func(t *testing.T) {
			r.config = small
			states, err := explore(r)
			require.NoError(t, err)
			t.Logf("%d states", states)
		})
	}
}

// TestMutants: what leaves out a rule is caught.
func TestMutants(t *testing.T) {
	ordered := Traits{Ordered: true}
	for name, r := range map[string]rules{
		"one flag":                   {traits: ordered, messages: 4, kinds: []kind{short, long}, mutant: oneFlag},
		"a credit too many":          {traits: ordered, messages: 5, kinds: []kind{short, long}, mutant: creditTooMany},
		"no sequence":                {traits: ordered, messages: 5, kinds: []kind{short}, mutant: sequenceIgnored},
		"heads are not cleared":      {traits: ordered, messages: 4, kinds: []kind{short, long}, mutant: headsNotCleared},
		"gathered is forgotten":      {traits: ordered, messages: 4, kinds: []kind{short, gathered}, mutant: gatherForgotten},
		"order is taken for granted": {traits: ordered, messages: 2, kinds: []kind{short}, backwards: true},
	} {
		t.Run(name, func(t *testing.T) {
			r.config = small
			_, err := explore(r)
			require.Error(t, err)
			t.Log(err)
		})
	}
}

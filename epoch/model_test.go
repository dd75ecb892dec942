package epoch

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The model is the table of package documentation, written down a second time and as
// simply as can be. All states that calls can lead to are visited, breadth first,
// and in each of them every call is made on both.

const modelRanks = 2

// phases of something that is opened and closed by calls in two steps.
const (
	none       = ""
	openingP   = "opening"
	openP      = "open"
	closingP   = "closing"
	suspendedP = "suspended"
)

type model struct {
	closed bool
	// fence is none, closingP or suspendedP; fenced tells whether a fence epoch is,
	// or was before the Fence in progress, open.
	fence    string
	asserted Assert
	fenced   bool
	fences   uint32

	start   string
	started []int
	starts  [modelRanks]uint32
	// notified is of a Complete or an UnlockAll that was suspended, postNotified of a Post.
	notified, postNotified int

	exposure string // none, openingP, openP, closingP while waited for, or suspendedP for a Post
	posted   []int
	posts    [modelRanks]uint32

	locks [modelRanks]struct {
		phase string
		kind  LockKind
	}
	all string
}

// key is the state but for the counts, which only grow.
func (m *model) key() string {
	return fmt.Sprint(m.closed, "|", m.fence, m.asserted, m.fenced, "|", m.start, m.started, "|", m.exposure, m.posted, "|", m.locks, "|", m.all, "|", m.notified, m.postNotified)
}

func (m *model) locked() bool {
	return slices.ContainsFunc(m.locks[:], func(l struct {
		phase string
		kind  LockKind
	}) bool {
		return l.phase != none
	})
}

// access tells whether any access epoch is open or in progress.
func (m *model) access() bool {
	return m.fence != none || m.fenced || m.start != none || m.locked() || m.all != none
}

// mayOpen is the rejection of a call that opens an access epoch, or the end of a window.
func (m *model) mayOpen() error {
	switch {
	case m.closed:
		return ErrClosed
	case m.access():
		return ErrEpochOpen
	}
	return nil
}

func moving(phase string) bool { return phase == openingP || phase == closingP }

func (m *model) open(target int) bool {
	return !m.closed && m.fenced && m.fence == none || !m.closed && m.start == openP && slices.Contains(m.started, target) || m.passive(target)
}

func (m *model) passive(target int) bool {
	return !m.closed && (m.locks[target].phase == openP || m.all == openP)
}

// A move is a call on both. legal tells whether the caller may make it at all: what
// ends a call in progress is called when one is.
type move struct {
	name  string
	legal func(m *model) bool
	real  func(s *State) error
	model func(m *model) error
}

func always(*model) bool { return true }

func done(do func(s *State)) func(s *State) error {
	return func(s *State) error {
		do(s)
		return nil
	}
}

func end(do func(m *model)) func(m *model) error {
	return func(m *model) error {
		do(m)
		return nil
	}
}

// closes is what the call does that closes what has a phase, or the error if nothing is open.
func closes(phase func(m *model) *string, nothing error) func(m *model) error {
	return func(m *model) error {
		p := phase(m)
		switch {
		case m.closed:
			return ErrClosed
		case *p == none:
			return nothing
		case moving(*p):
			return ErrBusy
		}
		*p = closingP
		return nil
	}
}

func moves() []move {
	var all []move
	add := func(name string, legal func(m *model) bool, real func(s *State) error, model func(m *model) error) {
		all = append(all, move{name, legal, real, model})
	}
	for _, assert := range []Assert{0, NoSucceed, NoPrecede | NoPut, 64} {
		add(fmt.Sprintf("BeginFence(%v)", assert), always,
			func(s *State) error {
				number, err := s.BeginFence(assert)
				if err == nil && number != s.LastFence()+1 {
					return fmt.Errorf("number is %d after %d", number, s.LastFence())
				}
				return err
			},
			func(m *model) error {
				switch {
				case m.closed:
					return ErrClosed
				case assert == 64:
					return ErrAssert
				case m.fence == closingP:
					return ErrBusy
				case m.exposure != none || m.start != none || m.locked() || m.all != none:
					return ErrEpochOpen
				case m.fence == suspendedP && assert != m.asserted:
					return ErrAssert
				}
				m.fence, m.asserted = closingP, assert
				return nil
			})
	}
	fencing := func(m *model) bool { return m.fence == closingP }
	add("EndFence", fencing, done(func(s *State) { s.EndFence(s.asserted) }), end(func(m *model) {
		m.fence, m.fenced, m.asserted = none, m.asserted&NoSucceed == 0, 0
		m.fences++
	}))
	add("SuspendFence", fencing, done((*State).SuspendFence), end(func(m *model) { m.fence = suspendedP }))
	add("FailFence", fencing, done((*State).FailFence), end(func(m *model) { m.fence, m.fenced, m.asserted = none, false, 0 }))

	groups := [][]int{{}, {1}, {0, 1}}
	for _, ranks := range append(groups, []int{5}) {
		group := Group{ranks}
		add(fmt.Sprintf("BeginStart(%v)", ranks), always,
			func(s *State) error { return s.BeginStart(group) },
			func(m *model) error {
				switch {
				case m.closed:
					return ErrClosed
				case slices.Contains(ranks, 5):
					return ErrGroup
				case moving(m.start):
					return ErrBusy
				}
				if err := m.mayOpen(); err != nil {
					return err
				}
				m.start, m.started = openingP, ranks
				for _, r := range ranks {
					m.starts[r]++
				}
				return nil
			})
		add(fmt.Sprintf("BeginPost(%v)", ranks), always,
			func(s *State) error { return s.BeginPost(group) },
			func(m *model) error {
				switch {
				case m.closed:
					return ErrClosed
				case slices.Contains(ranks, 5):
					return ErrGroup
				case moving(m.exposure):
					return ErrBusy
				case m.exposure == suspendedP && slices.Equal(ranks, m.posted):
					m.exposure = openingP
					return nil
				case m.exposure != none || m.fenced || m.fence != none:
					return ErrEpochOpen
				}
				m.exposure, m.posted = openingP, ranks
				for _, r := range ranks {
					m.posts[r]++
				}
				return nil
			})
	}
	in := func(phase string) func(m *model) bool { return func(m *model) bool { return m.start == phase } }
	add("EndStart", in(openingP), done((*State).EndStart), end(func(m *model) { m.start = openP }))
	add("AbortStart", in(openingP), done((*State).AbortStart), end(func(m *model) {
		for _, r := range m.started {
			m.starts[r]--
		}
		m.start, m.started = none, nil
	}))
	add("BeginComplete", always,
		func(s *State) error { _, err := s.BeginComplete(); return err },
		closes(func(m *model) *string { return &m.start }, ErrNotStarted))
	add("EndComplete", in(closingP), done((*State).EndComplete), end(func(m *model) { m.start, m.started, m.notified = none, nil, 0 }))
	add("SuspendComplete", in(closingP), done(func(s *State) { s.SuspendComplete(1) }), end(func(m *model) { m.start, m.notified = suspendedP, 1 }))

	add("BeginWait", always,
		func(s *State) error { _, err := s.BeginWait("Wait"); return err },
		func(m *model) error {
			if m.exposure == suspendedP && !m.closed {
				return ErrBusy
			}
			return closes(func(m *model) *string { return &m.exposure }, ErrNotPosted)(m)
		})
	posting := func(m *model) bool { return m.exposure == openingP }
	add("EndPost", posting, done((*State).EndPost), end(func(m *model) { m.exposure, m.postNotified = openP, 0 }))
	add("SuspendPost", posting, done(func(s *State) { s.SuspendPost(1) }), end(func(m *model) { m.exposure, m.postNotified = suspendedP, 1 }))
	waiting := func(m *model) bool { return m.exposure == closingP }
	add("EndWait", waiting, done((*State).EndWait), end(func(m *model) { m.exposure, m.posted = none, nil }))
	add("SuspendWait", waiting, done((*State).SuspendWait), end(func(m *model) { m.exposure = openP }))

	for target := range modelRanks {
		for _, kind := range []LockKind{Shared, Exclusive, 7} {
			add(fmt.Sprintf("BeginLock(%v, %d)", kind, target), always,
				func(s *State) error { return s.BeginLock(kind, target) },
				func(m *model) error {
					l := &m.locks[target]
					switch {
					case m.closed:
						return ErrClosed
					case kind == 7:
						return ErrLockKind
					case m.fence != none || m.fenced || m.start != none || m.all != none:
						return ErrEpochOpen
					case moving(l.phase):
						return ErrBusy
					case l.phase != none:
						return ErrEpochOpen
					}
					l.phase, l.kind = openingP, kind
					return nil
				})
		}
		phase := func(want string) func(m *model) bool {
			return func(m *model) bool { return m.locks[target].phase == want }
		}
		gone := end(func(m *model) { m.locks[target].phase, m.locks[target].kind = none, 0 })
		add(fmt.Sprintf("EndLock(%d)", target), phase(openingP), done(func(s *State) { s.EndLock(target) }), end(func(m *model) { m.locks[target].phase = openP }))
		add(fmt.Sprintf("AbortLock(%d)", target), phase(openingP), done(func(s *State) { s.AbortLock(target) }), gone)
		add(fmt.Sprintf("BeginUnlock(%d)", target), always,
			func(s *State) error {
				want := s.locks[target].kind
				kind, err := s.BeginUnlock(target)
				if err == nil && kind != want {
					return fmt.Errorf("kind is %v, was %v", kind, want)
				}
				return err
			},
			closes(func(m *model) *string { return &m.locks[target].phase }, ErrNotLocked))
		add(fmt.Sprintf("EndUnlock(%d)", target), phase(closingP), done(func(s *State) { s.EndUnlock(target) }), gone)
		add(fmt.Sprintf("SuspendUnlock(%d)", target), phase(closingP), done(func(s *State) { s.SuspendUnlock(target) }), end(func(m *model) { m.locks[target].phase = suspendedP }))
		add(fmt.Sprintf("CheckFlush(%d)", target), always,
			func(s *State) error { return s.CheckFlush("Flush", target) },
			func(m *model) error {
				switch {
				case m.closed:
					return ErrClosed
				case m.passive(target):
					return nil
				case m.locks[target].phase != none || m.all != none:
					return ErrBusy
				}
				return ErrNotLocked
			})
		add(fmt.Sprintf("Reject(%d)", target), func(m *model) bool { return !m.open(target) },
			func(s *State) error { return s.Reject("Put", target) },
			func(m *model) error {
				if m.closed {
					return ErrClosed
				}
				return ErrNoEpoch
			})
	}
	everyone := func(phase string) func(m *model) bool { return func(m *model) bool { return m.all == phase } }
	add("BeginLockAll", always, (*State).BeginLockAll, func(m *model) error {
		switch {
		case m.closed:
			return ErrClosed
		case moving(m.all):
			return ErrBusy
		}
		if err := m.mayOpen(); err != nil {
			return err
		}
		m.all = openingP
		return nil
	})
	add("EndLockAll", everyone(openingP), done((*State).EndLockAll), end(func(m *model) { m.all = openP }))
	add("AbortLockAll", everyone(openingP), done((*State).AbortLockAll), end(func(m *model) { m.all = none }))
	add("BeginUnlockAll", always, (*State).BeginUnlockAll, closes(func(m *model) *string { return &m.all }, ErrNotLocked))
	add("EndUnlockAll", everyone(closingP), done((*State).EndUnlockAll), end(func(m *model) { m.all, m.notified = none, 0 }))
	add("SuspendUnlockAll", everyone(closingP), done(func(s *State) { s.SuspendUnlockAll(1) }), end(func(m *model) { m.all, m.notified = suspendedP, 1 }))
	add("CheckFlushAll", always, func(s *State) error { return s.CheckFlushAll("FlushAll") }, func(m *model) error {
		some := func(ok func(phase string) bool) bool {
			return ok(m.all) || ok(m.locks[0].phase) || ok(m.locks[1].phase)
		}
		switch {
		case m.closed:
			return ErrClosed
		case some(func(phase string) bool { return phase == openP }):
			return nil
		case some(func(phase string) bool { return phase != none }):
			return ErrBusy
		}
		return ErrNotLocked
	})
	add("Close", always, (*State).Close, func(m *model) error {
		if err := m.mayOpen(); err != nil {
			return err
		}
		if m.exposure != none {
			return ErrEpochOpen
		}
		m.closed = true
		return nil
	})
	add("Abandon", func(m *model) bool { return !m.closed }, done((*State).Abandon), end(func(m *model) { m.closed = true }))
	return all
}

// An actor is a model and a State that have made the same moves.
type actor struct {
	m *model
	s *State
}

func (a *actor) make(mv *move) (got, want error) { return mv.real(a.s), mv.model(a.m) }

// differ says how the two differ that made the same moves, "" if they do not.
func (a *actor) differ() string {
	for target := range modelRanks {
		if got, want := a.s.Open(target), a.m.open(target); got != want {
			return fmt.Sprintf("Open(%d) is %v, want %v", target, got, want)
		}
		if got, want := a.s.Passive(target), a.m.passive(target); got != want {
			return fmt.Sprintf("Passive(%d) is %v, want %v", target, got, want)
		}
		if got, want := a.s.PostNumber(target), a.m.posts[target]; got != want {
			return fmt.Sprintf("PostNumber(%d) is %d, want %d", target, got, want)
		}
		if got, want := a.s.StartNumber(target), a.m.starts[target]; got != want {
			return fmt.Sprintf("StartNumber(%d) is %d, want %d", target, got, want)
		}
	}
	if got, want := a.s.Notified(), a.m.notified; got != want {
		return fmt.Sprintf("Notified is %d, want %d", got, want)
	}
	if got, want := a.s.PostNotified(), a.m.postNotified; got != want {
		return fmt.Sprintf("PostNotified is %d, want %d", got, want)
	}
	if got, want := a.s.LastFence(), a.m.fences; got != want {
		return fmt.Sprintf("LastFence is %d, want %d", got, want)
	}
	return ""
}

func replay(all []move, path []int) *actor {
	a := &actor{m: new(model), s: New(0, modelRanks)}
	for _, i := range path {
		a.make(&all[i])
	}
	return a
}

// explore visits every state and gives the first difference.
func explore(all []move, states func(n int)) error {
	// seen is what the State said of itself when the model first was in a state;
	// it says the same whichever way it came there.
	seen := map[string]string{}
	queue := [][]int{nil}
	for len(queue) > 0 {
		path := queue[0]
		queue = queue[1:]
		for i := range all {
			a := replay(all, path)
			if !all[i].legal(a.m) {
				continue
			}
			before := a.m.key()
			got, want := a.make(&all[i])
			where := func() string {
				text := ""
				for _, step := range append(slices.Clone(path), i) {
					text += all[step].name + "; "
				}
				return text
			}
			if want == nil && got != nil || want != nil && !errors.Is(got, want) {
				return fmt.Errorf("%serror is %v, want %v", where(), got, want)
			}
			if got != nil {
				var call *CallError
				if !errors.As(got, &call) || call.Remedy == "" || call.Open == "" {
					return fmt.Errorf("%s%v is no *CallError that says what is open and what is allowed", where(), got)
				}
				if a.m.key() != before {
					return fmt.Errorf("%sthe model changed though it rejected", where())
				}
			}
			if text := a.differ(); text != "" {
				return fmt.Errorf("%s%s", where(), text)
			}
			key := a.m.key()
			if said, found := seen[key]; !found {
				seen[key] = a.s.Describe()
				queue = append(queue, append(slices.Clone(path), i))
			} else if said != a.s.Describe() {
				return fmt.Errorf("%sit says %q, and on another way to the same state %q", where(), a.s.Describe(), said)
			}
		}
	}
	states(len(seen))
	return nil
}

func TestModel(t *testing.T) {
	require.NoError(t, explore(moves(), func(n int) {
		t.Logf("%d states, %d calls in each", n, len(moves()))
		require.Greater(t, n, 100)
	}))
}

// TestModelFindsDefects breaks one call at a time and expects the exploration to
// notice.
func TestModelFindsDefects(t *testing.T) {
	for _, defect := range []struct {
		name, call string
		broken     func(s *State, real func(s *State) error) error
	}{
		{"a fence that opens nothing", "EndFence", func(s *State, _ func(s *State) error) error { s.EndFence(NoSucceed); return nil }},
		{"a fence within locks", "BeginFence()", func(s *State, real func(s *State) error) error {
			mode := s.mode
			if mode == modeLocks {
				s.mode = modeNone
			}
			err := real(s)
			s.mode = mode
			return err
		}},
		{"a start that opens everything", "EndStart", func(s *State, real func(s *State) error) error {
			err := real(s)
			s.access[0].Store(accessActive)
			return err
		}},
		{"an abort that counts", "AbortStart", func(s *State, _ func(s *State) error) error { s.leaveStart(); return nil }},
		{"a complete that keeps the epoch open", "BeginComplete", func(s *State, real func(s *State) error) error {
			err := real(s)
			s.access[1].Store(accessActive)
			return err
		}},
		{"an unlock that leaves the access", "BeginUnlock(1)", func(s *State, real func(s *State) error) error {
			err := real(s)
			if err == nil {
				s.access[1].Store(accessPassive)
			}
			return err
		}},
		{"a lock that is never held", "EndLock(0)", func(s *State, real func(s *State) error) error { err := real(s); s.held = 0; return err }},
		{"a wait that forgets", "EndWait", func(s *State, real func(s *State) error) error { err := real(s); s.exposed = true; return err }},
		{"a post that does not count", "BeginPost([1])", func(s *State, real func(s *State) error) error {
			err := real(s)
			if err == nil {
				s.posts[1]--
			}
			return err
		}},
		{"a post that counts again when it goes on", "BeginPost([1])", func(s *State, real func(s *State) error) error {
			again := s.waiting == suspended
			err := real(s)
			if err == nil && again {
				s.posts[1]++
			}
			return err
		}},
		{"a post that goes on with another group", "BeginPost([1])", func(s *State, real func(s *State) error) error {
			if s.waiting == suspended && !s.closed {
				s.posted = Group{[]int{1}}
			}
			return real(s)
		}},
		{"a wait for a post that was left", "BeginWait", func(s *State, real func(s *State) error) error {
			if s.waiting == suspended {
				s.waiting = settled
			}
			return real(s)
		}},
		{"a post that forgets whom it has notified", "SuspendPost", func(s *State, _ func(s *State) error) error { s.SuspendPost(0); return nil }},
		{"an end that remembers who was notified", "EndUnlockAll", func(s *State, real func(s *State) error) error {
			notified := s.notified
			err := real(s)
			s.notified = notified
			return err
		}},
		{"an unlock of all that ends when it is left", "SuspendUnlockAll", func(s *State, _ func(s *State) error) error { s.EndUnlockAll(); return nil }},
		{"an epoch that opens after the end", "EndLockAll", func(s *State, _ func(s *State) error) error {
			s.step = settled
			s.all.Store(accessPassive)
			return nil
		}},
		{"closing with an exposure", "Close", func(s *State, real func(s *State) error) error {
			exposed := s.exposed
			s.exposed = false
			err := real(s)
			s.exposed = exposed
			return err
		}},
		{"a rejection without remedy", "BeginLockAll", func(s *State, real func(s *State) error) error {
			if err := real(s); err != nil {
				return ErrEpochOpen
			}
			return nil
		}},
	} {
		t.Run(defect.name, func(t *testing.T) {
			all := moves()
			i := slices.IndexFunc(all, func(mv move) bool { return mv.name == defect.call })
			require.GreaterOrEqual(t, i, 0, "no call %s", defect.call)
			real := all[i].real
			all[i].real = func(s *State) error { return defect.broken(s, real) }
			err := explore(all, func(int) {})
			require.Error(t, err)
			t.Log(err)
		})
	}
}

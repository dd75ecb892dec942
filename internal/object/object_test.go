package object_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/object"
)

// A queue holds the tickets of objects that are gone.
type queue chan int

func (q queue) gone(ticket int) { q <- ticket }

// next runs the collector until a ticket arrives.
func (q queue) next() int {
	for {
		runtime.GC()
		select {
		case ticket := <-q:
			return ticket
		default:
			runtime.Gosched()
		}
	}
}

// temporary makes an object to which only the Object refers.
//
//go:noinline
func temporary(t *testing.T, q queue, ticket, bytes, offset int) object.Object {
	o, ok := object.Of(make([]byte, bytes)[offset:], q.gone, ticket)
	require.True(t, ok)
	return o
}

// settle is for what must not come: a ticket of an object that dies after the others has come, so theirs
// would have.
func settle(t *testing.T, q queue) {
	const last = -1
	for range 3 {
		temporary(t, q, last, 1<<16, 0)
		require.Equal(t, last, q.next())
	}
}

func TestOf(t *testing.T) {
	q := make(queue, 1)
	array := make([]byte, 64<<20)
	for name, memory := range map[string][]byte{
		"slice":    make([]byte, 4096),
		"interior": array[40<<20+123:][:1000],
		"page":     array[4096:8192],
		"end":      array[len(array)-1:],
		"word":     make([]byte, 8),
		"strings":  []byte(strings.Repeat("a", 100)),
	} {
		t.Run(name, func(t *testing.T) {
			o, ok := object.Of(memory, q.gone, 1)
			require.True(t, ok)
			for range 3 {
				runtime.GC()
				require.Same(t, &memory[0], o.Alive())
			}
			o.Stop()
			require.Same(t, &memory[0], o.Alive(), "it is alive still")
		})
	}
	runtime.KeepAlive(array)
}

// Several may be of one object, and each has its own ticket.
func TestOfTwice(t *testing.T) {
	q := make(queue, 3)
	func() {
		array := make([]byte, 1<<20)
		for ticket := range 3 {
			_, ok := object.Of(array[ticket/2*4096:], q.gone, ticket)
			require.True(t, ok)
		}
	}()
	require.ElementsMatch(t, []int{0, 1, 2}, []int{q.next(), q.next(), q.next()})
}

var (
	global  [4096]byte
	written = [256]byte{1}
)

func TestOfOther(t *testing.T) {
	q := make(queue, 1)
	for name, memory := range map[string][]byte{
		"nil":         nil,
		"empty":       {},
		"empty part":  make([]byte, 10)[5:5],
		"nothing":     make([]byte, 0),
		"variable":    global[:],
		"initialized": written[10:],
	} {
		t.Run(name, func(t *testing.T) {
			o, ok := object.Of(memory, q.gone, 1)
			require.False(t, ok)
			require.Nil(t, o.Alive())
			o.Stop()
		})
	}
}

// Only what says that there is no object is no panic.
func TestOfPanics(t *testing.T) {
	memory := make([]byte, 4096)
	require.Panics(t, func() { object.Of(memory, func(*byte) {}, &memory[0]) })
	require.Panics(t, func() { object.Of(memory, func(*byte) {}, &memory[100]) })
	require.Panics(t, func() { object.Of(memory, func(int) { clear(memory) }, 1) })
}

func TestGone(t *testing.T) {
	q := make(queue, 1)
	for ticket, at := range []struct{ bytes, offset int }{{4096, 0}, {128, 0}, {1 << 20, 0}, {1 << 20, 300_001}} {
		o := temporary(t, q, ticket, at.bytes, at.offset)
		require.Equal(t, ticket, q.next())
		require.Nil(t, o.Alive())
		o.Stop()
	}
}

// A pointer from Alive keeps the object alive.
func TestAliveKeeps(t *testing.T) {
	q := make(queue, 2)
	o := temporary(t, q, 1, 1<<20, 4096)
	pointer := o.Alive()
	require.NotNil(t, pointer)
	settle(t, q)
	require.Same(t, pointer, o.Alive())
	runtime.KeepAlive(pointer)
	require.Equal(t, 1, q.next())
	require.Nil(t, o.Alive())
}

func TestStop(t *testing.T) {
	q := make(queue, 2)
	memory := make([]byte, 4096)
	o, ok := object.Of(memory, q.gone, 1)
	require.True(t, ok)
	other, ok := object.Of(memory[1024:], q.gone, 2)
	require.True(t, ok)
	o.Stop()
	o.Stop()
	runtime.KeepAlive(memory)
	require.Equal(t, 2, q.next(), "that is another's")
	require.Nil(t, other.Alive())
	require.Nil(t, o.Alive())
	settle(t, q)
}

func TestAliveAllocatesNothing(t *testing.T) {
	memory := make([]byte, 4096)
	o, _ := object.Of(memory, func(int) {}, 1)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if o.Alive() == nil {
			t.Fatal("it is gone")
		}
	}))
	runtime.KeepAlive(memory)
}

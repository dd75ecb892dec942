package pipe_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
	"github.com/onesided/rma/internal/pipe"
	"github.com/onesided/rma/internal/spin"
	"github.com/onesided/rma/internal/testsize"
)

func memory(c pipe.Config) []byte { return make([]byte, c.Bytes()) }

// pair returns both ends of a pipe.
func pair(t testing.TB, c pipe.Config) (*pipe.Writer, *pipe.Reader) {
	m := memory(c)
	w, err := pipe.NewWriter(c, m)
	require.NoError(t, err)
	r, err := pipe.NewReader(c, m)
	require.NoError(t, err)
	return w, r
}

// fill writes the content of message number. Parts of different messages differ.
func fill(into []byte, number uint64) {
	random := rand.NewPCG(number, 1)
	for i := range into {
		into[i] = byte(random.Uint64())
	}
	// These words look like heads at any line of a small ring.
	for i := 56; i+8 <= len(into); i += 64 {
		binary.NativeEndian.PutUint64(into[i:], 1<<32|(number+random.Uint64()%200))
	}
}

// Messages of all lengths arrive once, complete and in order, whatever the order in which writer and reader run.
func TestRandom(t *testing.T) {
	for seed := range testsize.Samples(t, 200) {
		random := rand.New(rand.NewPCG(seed, 0))
		c := pipe.Config{Lines: 4 + random.IntN(20)}
		c.MaxMessage = 1 + random.IntN(c.Lines/2*64-8)
		w, r := pair(t, c)
		type message struct {
			number uint64
			length int
		}
		var queue []message
		var number uint64
		for range 2000 {
			if random.IntN(2) == 0 {
				n := 1 + random.IntN(c.MaxMessage)
				place, err := w.Place(n)
				require.NoError(t, err)
				if place == nil {
					require.NotEmpty(t, queue, "seed %d: no room in an empty pipe for %d bytes of %+v", seed, n, c)
					continue
				}
				number++
				fill(place, number)
				w.Send(n)
				queue = append(queue, message{number, n})
				continue
			}
			got, err := r.Next()
			require.NoError(t, err, "seed %d: %+v", seed, c)
			if len(queue) == 0 {
				require.Nil(t, got)
				continue
			}
			want := make([]byte, queue[0].length)
			fill(want, queue[0].number)
			require.Equal(t, want, got, "seed %d: %+v", seed, c)
			r.Free()
			queue = queue[1:]
		}
	}
}

// Messages that were taken stay valid until their room is returned. The writer waits for that. A writer that does not
// wait is an error of the reader.
func TestTake(t *testing.T) {
	c := pipe.Config{Lines: 8, MaxMessage: 120}
	m := memory(c)
	w, err := pipe.NewWriter(c, m)
	require.NoError(t, err)
	r, err := pipe.NewReader(c, m)
	require.NoError(t, err)
	number := byte(0)
	send := func() bool {
		place, err := w.Place(100)
		require.NoError(t, err)
		if place == nil {
			return false
		}
		number++
		place[0] = number
		w.Send(100)
		return true
	}
	for range 3 {
		require.True(t, send())
	}
	require.False(t, send())
	var held [][]byte
	for want := byte(1); want <= 3; want++ {
		word, low := r.Look()
		require.Equal(t, low, uint32(word.Load()))
		got, err := r.Next()
		require.NoError(t, err)
		held = append(held, got)
		require.Equal(t, 2, r.Take())
		require.Equal(t, want, held[want-1][0])
	}
	require.False(t, send())
	require.True(t, r.Return(2))
	require.True(t, send())
	require.False(t, send())
	require.Equal(t, byte(2), held[1][0])

	// The count of freed lines is set as if all lines had been returned.
	for taken := uint64(8); taken <= 10; taken += 2 {
		binary.NativeEndian.PutUint64(m, taken)
		require.True(t, send())
		_, err = r.Next()
		require.NoError(t, err)
		require.Equal(t, 2, r.Take())
	}
	_, err = r.Next()
	require.ErrorIs(t, err, pipe.ErrProtocol)
	require.ErrorContains(t, err, "10 lines in use; allowed are 8")
}

// A writer and a reader in two goroutines agree in every interleaving.
func TestConcurrent(t *testing.T) {
	const messages = 20_000
	c := pipe.Config{Lines: 16, MaxMessage: 400}
	w, r := pair(t, c)
	sent := make(chan error, 1)
	length := func(i uint64) int { return 1 + int(i*37)%c.MaxMessage }
	go func() {
		for i := uint64(0); i < messages; {
			place, err := w.Place(length(i))
			if err != nil {
				sent <- err
				return
			}
			if place == nil {
				runtime.Gosched()
				continue
			}
			fill(place, i)
			w.Send(length(i))
			i++
		}
		sent <- nil
	}()
	want := make([]byte, c.MaxMessage)
	for i := uint64(0); i < messages; {
		got, err := r.Next()
		require.NoError(t, err)
		if got == nil {
			runtime.Gosched()
			continue
		}
		fill(want[:length(i)], i)
		require.Equal(t, want[:length(i)], got)
		r.Free()
		i++
	}
	require.NoError(t, <-sent)
}

func TestMessagesAllocateNothing(t *testing.T) {
	w, r := pair(t, pipe.Config{Lines: 16, MaxMessage: 100})
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		place, _ := w.Place(60)
		place[0] = 1
		w.Send(60)
		_, _ = r.Next()
		r.Free()
	}))
}

func TestShapes(t *testing.T) {
	good := pipe.Config{Lines: 4, MaxMessage: 120}
	m := memory(good)
	for _, c := range []struct {
		config pipe.Config
		memory []byte
		says   string
	}{
		{good, m, ""},
		{pipe.Config{Lines: 4, MaxMessage: 121}, make([]byte, 4096), "4 lines for messages of 121 bytes"},
		{pipe.Config{Lines: 3, MaxMessage: 1}, m, "3 lines"},
		{pipe.Config{Lines: 4}, m, "messages of 0 bytes"},
		{pipe.Config{Lines: 1<<24 + 1, MaxMessage: 1}, m, "allowed are 4 to 16777216 lines"},
		{good, m[:len(m)-1], fmt.Sprintf("%d bytes of memory; it takes %d", len(m)-1, len(m))},
		{good, make([]byte, len(m)+1)[1:], "multiple of 8"},
	} {
		_, writing := pipe.NewWriter(c.config, c.memory)
		_, reading := pipe.NewReader(c.config, c.memory)
		if c.says == "" {
			require.NoError(t, writing)
			require.NoError(t, reading)
			continue
		}
		require.ErrorContains(t, writing, c.says)
		require.ErrorContains(t, reading, c.says)
	}
	w, _ := pair(t, good)
	for _, n := range []int{0, -1, 121} {
		_, err := w.Place(n)
		require.ErrorContains(t, err, "allowed are 1 to 120")
	}
}

// A reader returns parts of its memory or an error, whatever a writer leaves there.
func FuzzReader(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 5, 0, 0, 0, 'h', 'e', 'l', 'l', 'o'}, uint8(0))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0}, uint8(1))
	f.Add([]byte{1, 0, 0, 0, 255, 255, 255, 255}, uint8(2))
	f.Fuzz(func(t *testing.T, garbage []byte, shape uint8) {
		c := pipe.Config{Lines: 4 + int(shape%8), MaxMessage: 100}
		m := memory(c)
		fresh := func() *pipe.Reader {
			clear(m)
			copy(m[64:], garbage)
			r, err := pipe.NewReader(c, m)
			require.NoError(t, err)
			return r
		}
		allocs.AtMost(t, 4<<10, func() {
			r := fresh()
			for range 100 {
				if got, err := r.Next(); err != nil || got == nil {
					return
				}
				r.Free()
			}
		})
		r := fresh()
		for range 100 {
			got, err := r.Next()
			if err != nil {
				require.ErrorIs(t, err, pipe.ErrProtocol)
				return
			}
			if got == nil {
				return
			}
			require.LessOrEqual(t, len(got), c.MaxMessage)
			r.Free()
		}
	})
}

// A writer stays within its memory, whatever count a reader stores.
func FuzzWriter(f *testing.F) {
	f.Add(uint64(3), uint64(1<<63), uint8(10))
	f.Add(uint64(0), uint64(4), uint8(200))
	f.Fuzz(func(t *testing.T, one, other uint64, length uint8) {
		c := pipe.Config{Lines: 8, MaxMessage: 248}
		m := memory(c)
		w, err := pipe.NewWriter(c, m)
		require.NoError(t, err)
		n := 1 + int(length)%c.MaxMessage
		for i := range 20 {
			freed := one
			if i%2 == 1 {
				freed = other
			}
			binary.NativeEndian.PutUint64(m, freed)
			place, err := w.Place(n)
			if err != nil {
				require.ErrorIs(t, err, pipe.ErrProtocol)
				return
			}
			if place == nil {
				return
			}
			require.Len(t, place, n)
			fill(place, uint64(i))
			w.Send(n)
		}
	})
}

func Example() {
	shape := pipe.Config{Lines: 64, MaxMessage: 1024}
	// This memory is zero, and both sides have it.
	shared := make([]byte, shape.Bytes())

	w, err := pipe.NewWriter(shape, shared)
	if err != nil {
		panic(err)
	}
	place, err := w.Place(5)
	if err != nil || place == nil {
		panic("there is no room")
	}
	copy(place, "hello")
	w.Send(5)

	r, err := pipe.NewReader(shape, shared)
	if err != nil {
		panic(err)
	}
	message, err := r.Next()
	if err != nil {
		panic(err)
	}
	fmt.Println(string(message))
	r.Free()
	// Output: hello
}

// BenchmarkPingPong measures a message there and one back, between two goroutines on cores of their own.
func BenchmarkPingPong(b *testing.B) {
	for _, n := range []int{8, 1024} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := pipe.Config{Lines: 1024, MaxMessage: 2048}
			there, far := pair(b, c)
			back, near := pair(b, c)
			bytes, done := make([]byte, n), make(chan struct{})
			send := func(w *pipe.Writer) {
				place, _ := w.Place(n)
				copy(place, bytes)
				w.Send(n)
			}
			receive := func(r *pipe.Reader, into []byte) {
				for {
					if got, _ := r.Next(); got != nil {
						copy(into, got)
						r.Free()
						return
					}
					spin.Relax()
				}
			}
			go func() {
				defer close(done)
				into := make([]byte, n)
				for range b.N {
					receive(far, into)
					send(back)
				}
			}()
			into := make([]byte, n)
			b.ResetTimer()
			for range b.N {
				send(there)
				receive(near, into)
			}
			<-done
		})
	}
}

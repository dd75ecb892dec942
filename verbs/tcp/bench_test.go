package tcp_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/tlstest"
	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/tcp"
)

// linked are two devices with a connection, and memory at its far end.
type linked struct {
	near, far     verbs.Device
	nearCQ, farCQ verbs.CompletionQueue
	pair, farPair verbs.QueuePair
	mine, theirs  verbs.MemoryRegion
	completion    [16]verbs.Completion
	stop, stopped chan struct{}
}

const linkedBytes = 4 << 20

// link connects two devices of this process. Where it serves, a goroutine on a thread
// of its own polls the far one.
func link(t testing.TB, serve bool, options tcp.Options) *linked {
	t.Helper()
	l := &linked{stop: make(chan struct{}), stopped: make(chan struct{})}
	l.near, l.nearCQ, l.mine = openLinked(t, options)
	l.far, l.farCQ, l.theirs = openLinked(t, options)
	l.pair = l.connect(t)
	if serve {
		l.serve(t)
	}
	return l
}

// connect makes a connection; farPair is its other end.
func (l *linked) connect(t testing.TB) verbs.QueuePair {
	t.Helper()
	pair, err := l.near.Connect(l.far.Address(), nil, verbs.QueuePairConfig{SendQueue: l.nearCQ, ReceiveQueue: l.nearCQ, MaxSends: 256, MaxReceives: 256})
	require.NoError(t, err)
	var requests [1]verbs.ConnectionRequest
	for l.far.PollConnections(requests[:]) == 0 {
		l.nearCQ.Poll(nil)
		l.farCQ.Poll(nil)
		runtime.Gosched()
	}
	l.farPair, err = requests[0].Accept(verbs.QueuePairConfig{SendQueue: l.farCQ, ReceiveQueue: l.farCQ, MaxSends: 256, MaxReceives: 256})
	require.NoError(t, err)
	for pair.State() == verbs.StateConnecting {
		l.nearCQ.Poll(nil)
	}
	return pair
}

// serve polls the far device until the test ends.
func (l *linked) serve(t testing.TB) {
	go func() {
		runtime.LockOSThread()
		defer close(l.stopped)
		for {
			select {
			case <-l.stop:
				return
			default:
			}
			for range 64 {
				l.farCQ.Poll(nil)
			}
		}
	}()
	t.Cleanup(func() { close(l.stop); <-l.stopped })
}

func openLinked(t testing.TB, options tcp.Options) (verbs.Device, verbs.CompletionQueue, verbs.MemoryRegion) {
	t.Helper()
	device, err := tcp.Open(options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, device.Close()) })
	queue, err := device.CreateCompletionQueue(1024)
	require.NoError(t, err)
	memory, err := device.AllocateMemory(linkedBytes)
	require.NoError(t, err)
	region, err := device.RegisterMemory(memory, verbs.LocalWrite|verbs.RemoteWrite|verbs.RemoteRead|verbs.RemoteAtomic)
	require.NoError(t, err)
	return device, queue, region
}

// await spins until n completions came, all of them successes.
func (l *linked) await(t testing.TB, n int) {
	for n > 0 {
		got := l.nearCQ.Poll(l.completion[:])
		for _, c := range l.completion[:got] {
			if c.Status != verbs.StatusSuccess {
				t.Fatalf("%+v: %v", c, l.pair.Err())
			}
		}
		n -= got
	}
}

// request is a signalled request of n bytes.
func (l *linked) request(opcode verbs.Opcode, n int) []verbs.SendRequest {
	remote := l.theirs.Remote()
	return []verbs.SendRequest{{
		Opcode: opcode, Flags: verbs.Signalled, RemoteAddress: remote.Address, RKey: remote.RKey, Operand: 1,
		Segments: []verbs.Segment{{Memory: l.mine.Memory()[:n], LKey: l.mine.LKey()}},
	}}
}

// post posts, polling while the queue is full, and tells how many completions it took.
func (l *linked) post(t testing.TB, requests []verbs.SendRequest) (completed int) {
	for {
		n, err := l.pair.PostSend(requests)
		if err == nil {
			return completed
		}
		requests = requests[n:]
		completed += l.nearCQ.Poll(l.completion[:])
		if l.pair.State() == verbs.StateError {
			t.Fatal(l.pair.Err())
		}
	}
}

func BenchmarkLatency(b *testing.B) {
	for _, secure := range []bool{false, true} {
		suffix, config := "", (*tls.Config)(nil)
		if secure {
			suffix, config = "/tls", tlstest.Config(b, "127.0.0.1")
		}
		for _, c := range []struct {
			name   string
			opcode verbs.Opcode
			bytes  int
		}{
			{"write 8", verbs.OpRDMAWrite, 8}, {"write 1K", verbs.OpRDMAWrite, 1 << 10}, {"write 4K", verbs.OpRDMAWrite, 4 << 10},
			{"write 64K", verbs.OpRDMAWrite, 64 << 10},
			{"read 8", verbs.OpRDMARead, 8}, {"read 1K", verbs.OpRDMARead, 1 << 10}, {"read 64K", verbs.OpRDMARead, 64 << 10},
			{"fetch and add", verbs.OpFetchAdd, 8},
		} {
			b.Run(c.name+suffix, func(b *testing.B) {
				l := link(b, true, tcp.Options{TLS: config})
				requests := l.request(c.opcode, c.bytes)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := l.pair.PostSend(requests); err != nil {
						b.Fatal(err)
					}
					l.await(b, 1)
				}
			})
		}
	}
}

// BenchmarkCrowd writes 8 bytes beside connections on which nothing happens.
func BenchmarkCrowd(b *testing.B) {
	for _, beside := range []int{1, 2, 3, 7, 63} {
		b.Run(fmt.Sprint(beside), func(b *testing.B) {
			l := link(b, false, tcp.Options{})
			for range beside {
				l.connect(b)
			}
			l.pair = l.connect(b)
			l.serve(b)
			requests := l.request(verbs.OpRDMAWrite, 8)
			for b.Loop() {
				if _, err := l.pair.PostSend(requests); err != nil {
					b.Fatal(err)
				}
				l.await(b, 1)
			}
		})
	}
}

// BenchmarkPosters writes 8 bytes from goroutines of which each has a connection of the same device. A goroutine whose
// queue is full polls both devices.
func BenchmarkPosters(b *testing.B) {
	for _, posters := range []int{1, 2} {
		b.Run(fmt.Sprint(posters), func(b *testing.B) {
			l := link(b, false, tcp.Options{})
			silent, signalled := l.request(verbs.OpRDMAWrite, 8), l.request(verbs.OpRDMAWrite, 8)
			silent[0].Flags = 0
			queues, pairs := make([]verbs.CompletionQueue, posters), make([]verbs.QueuePair, posters)
			for i := range posters {
				var err error
				l.nearCQ, err = l.near.CreateCompletionQueue(1024)
				require.NoError(b, err)
				queues[i], pairs[i] = l.nearCQ, l.connect(b)
			}
			var running sync.WaitGroup
			b.ResetTimer()
			for i := range posters {
				running.Go(func() {
					var into [16]verbs.Completion
					for n := i; n < b.N; n += posters {
						requests := silent
						if n/posters%64 == 63 {
							requests = signalled
						}
						for {
							_, err := pairs[i].PostSend(requests)
							if err == nil {
								break
							}
							if !errors.Is(err, verbs.ErrQueueFull) {
								b.Error(err)
								return
							}
							queues[i].Poll(into[:])
							l.farCQ.Poll(nil)
						}
					}
				})
			}
			running.Wait()
		})
	}
}

// BenchmarkSendReceive sends a message there and back.
func BenchmarkSendReceive(b *testing.B) {
	l := link(b, false, tcp.Options{})
	into := []verbs.ReceiveRequest{{Segments: []verbs.Segment{{Memory: l.mine.Memory()[:8], LKey: l.mine.LKey()}}}}
	farInto := []verbs.ReceiveRequest{{Segments: []verbs.Segment{{Memory: l.theirs.Memory()[:8], LKey: l.theirs.LKey()}}}}
	for range 16 {
		_, _ = l.pair.PostReceive(into)
		_, _ = l.farPair.PostReceive(farInto)
	}
	stopped := make(chan struct{})
	stop := make(chan struct{})
	send := func(s verbs.MemoryRegion, i int) []verbs.SendRequest {
		r := []verbs.SendRequest{{Opcode: verbs.OpSend, Segments: []verbs.Segment{{Memory: s.Memory()[:8], LKey: s.LKey()}}}}
		if i%64 == 0 {
			r[0].Flags = verbs.Signalled
		}
		return r
	}
	echo := func(pair verbs.QueuePair, cq verbs.CompletionQueue, completions []verbs.Completion, into []verbs.ReceiveRequest, reply func() bool) {
		for _, c := range completions[:cq.Poll(completions)] {
			if c.Status == verbs.StatusSuccess && c.Opcode == verbs.OpReceive {
				_, _ = pair.PostReceive(into)
				reply()
			}
		}
	}
	theirs := [2][]verbs.SendRequest{send(l.theirs, 0), send(l.theirs, 1)}
	mine := [2][]verbs.SendRequest{send(l.mine, 0), send(l.mine, 1)}
	go func() {
		runtime.LockOSThread()
		defer close(stopped)
		var completions [4]verbs.Completion
		n := 0
		for {
			select {
			case <-stop:
				return
			default:
			}
			for range 64 {
				echo(l.farPair, l.farCQ, completions[:], farInto, func() bool {
					n++
					_, err := l.farPair.PostSend(theirs[min(n%64, 1)])
					return err == nil
				})
			}
		}
	}()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		if _, err := l.pair.PostSend(mine[min(n%64, 1)]); err != nil {
			b.Fatal(err)
		}
		for back := false; !back; {
			echo(l.pair, l.nearCQ, l.completion[:4], into, func() bool { back = true; return true })
		}
	}
	close(stop)
	<-stopped
}

func BenchmarkStream(b *testing.B) {
	for _, secure := range []bool{false, true} {
		suffix, config := "", (*tls.Config)(nil)
		if secure {
			suffix, config = "/tls", tlstest.Config(b, "127.0.0.1")
		}
		for _, opcode := range []verbs.Opcode{verbs.OpRDMAWrite, verbs.OpRDMARead} {
			for _, size := range []int{8, 1 << 10, 64 << 10, 1 << 20} {
				name := map[verbs.Opcode]string{verbs.OpRDMAWrite: "write", verbs.OpRDMARead: "read"}[opcode]
				b.Run(fmt.Sprintf("%s %d%s", name, size, suffix), func(b *testing.B) {
					l := link(b, true, tcp.Options{TLS: config})
					// One request in four of the window is signalled.
					window := max(4, min(64, (4<<20)/size))
					signalled, silent := l.request(opcode, size), l.request(opcode, size)
					silent[0].Flags = 0
					b.SetBytes(int64(size))
					b.ReportAllocs()
					outstanding := 0
					for i := 1; b.Loop(); i++ {
						requests := silent
						if i%(window/4) == 0 {
							requests = signalled
							outstanding++
						}
						outstanding -= l.post(b, requests)
						for outstanding >= 4 {
							outstanding -= l.nearCQ.Poll(l.completion[:])
						}
					}
					l.post(b, signalled)
					l.await(b, outstanding+1)
				})
			}
		}
	}
}

// BenchmarkSocket is what there is to reach: one socket whose ends are read by
// non-blocking calls again and again, and written whole.
func BenchmarkSocket(b *testing.B) {
	b.Run("ping-pong 44", func(b *testing.B) {
		near, far := rawSockets(b, 1)
		go func() {
			runtime.LockOSThread()
			buffer := make([]byte, 44)
			for rawRead(far[0], buffer) == nil && rawWrite(far[0], buffer) == nil {
			}
		}()
		buffer := make([]byte, 44)
		for b.Loop() {
			if rawWrite(near[0], buffer) != nil || rawRead(near[0], buffer) != nil {
				b.Fatal("the socket broke")
			}
		}
	})
	for _, size := range []int{64 << 10, 1 << 20} {
		for _, sockets := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("stream %d over %d", size, sockets), func(b *testing.B) {
				near, far := rawSockets(b, sockets)
				total := 0
				done := make(chan struct{})
				go func() {
					runtime.LockOSThread()
					defer close(done)
					buffer := make([]byte, size)
					for open := len(far); open > 0; {
						open = 0
						for _, fd := range far {
							n, err := unix.Read(fd, buffer)
							if n > 0 || err == unix.EAGAIN {
								open++
							}
							total += max(n, 0)
						}
					}
				}()
				buffer := make([]byte, size)
				b.SetBytes(int64(size))
				left := make([]int, sockets)
				for i := 0; b.Loop(); i++ {
					// The socket whose turn it is takes a whole message.
					fd := near[i%sockets]
					for left[0] = size; left[0] > 0; {
						n, err := unix.Write(fd, buffer[:left[0]])
						if err != nil && err != unix.EAGAIN {
							b.Fatal(err)
						}
						left[0] -= max(n, 0)
					}
				}
				for _, fd := range near {
					_ = unix.Shutdown(fd, unix.SHUT_WR)
				}
				<-done
				require.Equal(b, b.N*size, total)
			})
		}
	}
}

// rawSockets connects sockets that do not block and that Go's poller does not know.
func rawSockets(t testing.TB, n int) (near, far []int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	take := func(conn net.Conn) int {
		raw, err := conn.(*net.TCPConn).SyscallConn()
		require.NoError(t, err)
		fd := -1
		require.NoError(t, raw.Control(func(first uintptr) { fd, err = unix.Dup(int(first)) }))
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		t.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	for range n {
		dialled, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		accepted, err := listener.Accept()
		require.NoError(t, err)
		near, far = append(near, take(dialled)), append(far, take(accepted))
	}
	return near, far
}

func rawRead(fd int, into []byte) error {
	for len(into) > 0 {
		n, err := rawReadOnce(fd, into)
		if err == unix.EAGAIN {
			continue
		}
		if n == 0 || err != nil {
			return fmt.Errorf("read: %d, %w", n, err)
		}
		into = into[n:]
	}
	return nil
}

func rawWrite(fd int, from []byte) error {
	for len(from) > 0 {
		n, err := unix.Write(fd, from)
		if err != nil && err != unix.EAGAIN {
			return err
		}
		from = from[max(n, 0):]
	}
	return nil
}

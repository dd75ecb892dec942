package tcp

import (
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/tlstest"
	"github.com/onesided/rma/verbs"
)

func sizeOf[T any]() int { return int(reflect.TypeFor[T]().Size()) }

// What the package's documentation says that a connection takes.
func TestSizes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipped: the sizes that the documentation has are those of Linux, whose system calls take vectors of other types")
	}
	c := newConnection(bareDevice(), "", phaseDialing)
	buffers := len(c.in.buffer) + cap(c.out.scratch) + (cap(c.in.vectors)+cap(c.out.vectors))*sizeOf[[]byte]()
	connection := (buffers + sizeOf[connection]() + sizeOf[socket]() + sizeOf[queuePair]() + 512) >> 10
	require.Equal(t, 20, connection, "KiB of a connection")
	segment := sizeOf[verbs.Segment]()
	require.Equal(t, 32, segment)
	require.Equal(t, 152, sizeOf[request]()+segment, "bytes for each request")
	require.Equal(t, 72, sizeOf[posted]()+segment, "bytes for each receive")
	require.Equal(t, 48, sizeOf[pendingResponse](), "bytes for each pending response")
}

// What TLS adds is the look-ahead, and nothing of the size of what was sent.
func TestSizeOfTLS(t *testing.T) {
	config := tlstest.Config(t, "127.0.0.1")
	near, far := openWith(t, Options{TLS: config}), openWith(t, Options{TLS: config})
	p, q := join(t, near, far)
	memory := make([]byte, 4<<20)
	region, err := far.RegisterMemory(memory, rights)
	require.NoError(t, err)
	_, err = p.PostSend([]verbs.SendRequest{{
		Opcode: verbs.OpRDMAWrite, Flags: verbs.Signalled,
		Segments:      []verbs.Segment{{Memory: make([]byte, len(memory)), LKey: reservedLKey}},
		RemoteAddress: region.Remote().Address, RKey: region.Remote().RKey,
	}})
	require.NoError(t, err)
	var done [1]verbs.Completion
	pollUntil(t, "the completion", func() bool { return p.sendCQ.Poll(done[:]) == 1 }, near, far)
	require.Equal(t, verbs.StatusSuccess, done[0].Status)
	for _, pair := range []*queuePair{p, q} {
		c := pair.conn.stream.(*secured).carrier
		require.Equal(t, 16<<10, cap(c.buffer)+cap(c.out), "bytes of an idle connection")
	}
}

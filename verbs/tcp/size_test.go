package tcp

import (
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

func sizeOf[T any]() int { return int(reflect.TypeFor[T]().Size()) }

// What the package's documentation says that a connection takes.
func TestSizes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the sizes are those of Linux")
	}
	c := newConnection(bareDevice(), "", phaseDialing)
	buffers := len(c.in.buffer) + cap(c.out.scratch) + (cap(c.in.vectors)+cap(c.out.vectors))*sizeOf[[]byte]()
	connection := (buffers + sizeOf[connection]() + sizeOf[socket]() + sizeOf[queuePair]() + 512) >> 10
	require.Equal(t, 23, connection, "KiB of a connection")
	segment := sizeOf[verbs.Segment]()
	require.Equal(t, 32, segment)
	require.Equal(t, 152, sizeOf[request]()+segment, "bytes for each of MaxSends")
	require.Equal(t, 72, sizeOf[posted]()+segment, "bytes for each of MaxReceives")
}

package job

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who is told of two failures knows which came first, and says so once, whether they came
// before there was a link or after.
func TestToldInOrder(t *testing.T) {
	for _, late := range []bool{false, true} {
		worlds := meetApart(t, "one", "two", "three", "four")
		link := func() {
			_, err := worlds[0].Link(1)
			require.NoError(t, err)
		}
		if !late {
			link()
		}
		worlds[0].roster.fail(3, errors.New("killed"))
		worlds[0].roster.fail(2, errors.New("gone"))
		if late {
			link()
		}
		for worlds[1].FailureCount() < 2 {
			worlds[0].Poll()
			worlds[1].Poll()
			runtime.Gosched()
		}
		require.EqualError(t, worlds[1].Failure(3), "world: rank 3 has failed: killed (told by rank 0)")
		require.EqualError(t, worlds[1].Failure(2), "world: rank 2 has failed: gone (told by rank 0), after rank 3 had failed: killed (told by rank 0)")
		for _, w := range worlds {
			require.NoError(t, w.depart())
		}
	}
}

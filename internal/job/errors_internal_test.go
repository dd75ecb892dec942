package job

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An error without a cause, as programs may make one, can be printed.
func TestErrorsWithoutCause(t *testing.T) {
	for text, err := range map[string]error{
		"world: rank 1 has failed: <nil>":         &PeerError{Rank: 1},
		"world: Fence: rank 0 has failed: <nil>":  &PeerError{Op: "Fence"},
		"world: rank 0: <nil>":                    new(RankError),
		"<nil>, after rank 2 had failed: <nil>":   &laterError{first: &PeerError{Rank: 2}},
		"<nil> (it is rank 3 of the job)":         &memberError{inJob: 3},
		"messages of rank 0: <nil>":               new(boxError),
		"reaching rank 0: <nil>":                  new(linkageError),
		"world: rank 1 has failed: rank 0: <nil>": &PeerError{Rank: 1, Cause: new(RankError)},
		"world: rank 0 rejected a message: ":      new(RejectionError),
		"world: : ranks disagree: rank 0 has come to number 0 by call 0, rank 0 by call 0": new(MeetingError),
	} {
		require.EqualError(t, err, text)
	}
}

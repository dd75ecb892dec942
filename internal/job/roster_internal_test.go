package job

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
)

// A failure after the first tells of that too: it may be why.
func TestLaterFailure(t *testing.T) {
	r := newRoster(4)
	r.fail(2, errors.New("killed"))
	r.fail(0, verbs.ErrPeerGone)
	r.fail(2, errors.New("noticed again"))
	require.EqualError(t, r.failed[2].Load().Cause, "killed")
	require.EqualError(t, r.failed[0].Load().Cause, "verbs: peer is gone, after rank 2 had failed: killed")
	require.ErrorIs(t, r.failed[0].Load(), verbs.ErrPeerGone)
}

// Which rank of the job a member of a team is stands in an error once.
func TestMemberErrorOnce(t *testing.T) {
	once := &memberError{3, errors.New("killed")}
	require.EqualError(t, once, "killed (it is rank 3 of the job)")
	require.EqualError(t, &memberError{3, once}, once.Error())
	require.EqualError(t, &memberError{4, once}, "killed (it is rank 3 of the job) (it is rank 4 of the job)")
}

package runner

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/program"
)

func TestALauncherDecidesTheRanks(t *testing.T) {
	o, r, err := Parse([]string{"-n", "2"})
	require.NoError(t, err)
	assert.NoError(t, checkLaunched(o, r.Ranks, 2, "tcp"))
	assert.EqualError(t, checkLaunched(o, r.Ranks, 4, "tcp"), "bench: -n 2: the launcher started 4 ranks")
	o, r, err = Parse([]string{"-device", "sim:ideal"})
	require.NoError(t, err)
	assert.EqualError(t, checkLaunched(o, r.Ranks, 2, "tcp"), "bench: -device sim:ideal has its ranks in one process: run it without a launcher")
}

func TestADeviceThatIsAskedForIsTheOneInUse(t *testing.T) {
	o, _, err := Parse([]string{"-device", "tcp"})
	require.NoError(t, err)
	assert.NoError(t, checkLaunched(o, 0, 2, "tcp"))
	t.Setenv(device.Variable, "")
	err = checkLaunched(o, 0, 2, "shm")
	assert.EqualError(t, err, `bench: -device tcp: the ranks use shm: RMA_DEVICE="" in their environment, not "tcp"`)
	assert.ErrorIs(t, err, cli.ErrUsage)

	o, _, err = Parse([]string{"-device", "ibv"})
	require.NoError(t, err)
	assert.NoError(t, checkLaunched(o, 0, 2, "ibv:mlx5_0"))
	assert.ErrorContains(t, checkLaunched(o, 0, 2, "tcp"), "bench: -device ibv: the ranks use tcp")

	o.Refuses = func(device string) error { return errors.New("not over " + device) }
	assert.EqualError(t, checkLaunched(o, 0, 2, "ibv:rxe0"), "not over ibv")
}

// A rank that ended itself has told its cell, and the limit only once.
func TestAJobThatIsNotInTimeSaysWhere(t *testing.T) {
	o := &Options{Timeout: 2 * time.Minute}
	err := o.notInTime(errors.New("bench: rank 0 of 2: not done in time: 2m0s (-timeout): bench: put_bw of size 8"))
	assert.ErrorIs(t, err, program.ErrTimeout)
	assert.EqualError(t, err, "not done in time: 2m0s (-timeout): put_bw of size 8")
	assert.EqualError(t, o.notInTime(errors.New("bench: rank 1 of 2: signal: killed")), "not done in time: 2m0s (-timeout): rank 1 of 2: signal: killed")
}

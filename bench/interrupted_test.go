package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/internal/await"
)

// peersOnPath are scripts in place of Open MPI, whose programs measure fop_lat and stand still at cas_lat, having made
// the file that is returned, and of an MPICH whose compiler fails.
func peersOnPath(t *testing.T) (waiting string) {
	t.Helper()
	dir := t.TempDir()
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	waiting = filepath.Join(dir, "waiting")
	benchtest.Script(t, filepath.Join(dir, "mpirun.openmpi"), `case "$*" in
--version) echo "mpirun (Open MPI) 4.1.4" ;;
*fop_lat) echo "fop_lat 8 2000 us" ;;
*) : >'`+waiting+`'; exec '`+sleep+`' 3600 ;;
esac`)
	benchtest.Script(t, filepath.Join(dir, "mpicc.openmpi"), `: >"$4"`)
	benchtest.Script(t, filepath.Join(dir, "mpirun.mpich"), `printf 'HYDRA build details:\n    Version:  4.0.2\n'`)
	benchtest.Script(t, filepath.Join(dir, "mpicc.mpich"), `echo "no memory" >&2; exit 1`)
	t.Setenv("PATH", dir)
	return waiting
}

func TestAComparisonThatIsInterruptedPrintsWhatItHas(t *testing.T) {
	interrupted := func(t *testing.T, format string) string {
		waiting := peersOnPath(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		status := make(chan int, 1)
		var stdout, stderr bytes.Buffer
		go func() {
			status <- run(ctx, []string{"-device", "local", "-peers", "-rounds", "2", "-repeat", "1", "-format", format, "fop_lat", "cas_lat"}, &stdout, &stderr)
		}()
		await.True(t, "the peer's second job", func() bool {
			_, err := os.Stat(waiting)
			return err == nil
		})
		cancel(errors.New("received SIGINT"))
		assert.Equal(t, 1, await.Receive(t, "the end", status))
		assert.Equal(t, "bench: ended early: received SIGINT\n", stderr.String())
		return stdout.String()
	}
	t.Run("text", func(t *testing.T) {
		text := interrupted(t, "text")
		assert.Contains(t, text, "Ended early: received SIGINT. These runs are missing:\n  of round 1: cas_lat by openmpi\n  all of round 2\n\n")
		assert.Regexp(t, `(?m)^fop_lat +8  us +[\d.]+ +2000\.0 +0\.\d\d `, text)
		assert.Regexp(t, `(?m)^cas_lat +8  us +[\d.]+ +- +- `, text)
		assert.Regexp(t, `(?s)MPICH is left out: .*no memory`, text)
	})
	t.Run("json", func(t *testing.T) {
		var c compare.Table
		require.NoError(t, json.NewDecoder(strings.NewReader(interrupted(t, "json"))).Decode(&c))
		assert.Equal(t, "received SIGINT", c.Ended)
		assert.Equal(t, []string{"of round 1: cas_lat by openmpi", "all of round 2"}, c.Lacks)
	})
}

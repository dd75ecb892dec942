package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/cases"
)

// jobOf returns the one job of these cases.
func jobOf(t *testing.T, names ...string) Job {
	t.Helper()
	selected, err := Parse(names)
	require.NoError(t, err)
	jobs, err := (&Selection{Cases: selected}).Jobs(0)
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	return jobs[0]
}

func TestResultsArePickedOutOfAPeersOutput(t *testing.T) {
	values := func(file string, args ...string) map[int]float64 {
		found := make(map[int]float64)
		for _, r := range ParseResults(benchtest.Recorded(t, file), jobOf(t, args...)) {
			found[r.Size] = r.Value
		}
		return found
	}
	assert.Equal(t, map[int]float64{8: 0.0223, 1024: 0.0266, 8192: 0.0900, 65536: 0.7118, 1048576: 16.5658}, values("openmpi_put_flush_lat.txt", "put_flush_lat"))
	assert.Equal(t, map[int]float64{8: 0.2431}, values("mpich_put_flush_lat.txt", "put_flush_lat:8"))
	assert.Empty(t, values("openmpi_put_flush_lat.txt", "get_flush_lat"), "of another case")
	assert.Empty(t, values("openmpi_cas_lat_crash.txt", "cas_lat"))
	assert.Equal(t, map[int]float64{8: 1.1278}, values("mpich_time_limit.txt", "get_flush_lat"), "what came before the end")
}

func TestTheBestLoopCounts(t *testing.T) {
	least := NewResult(cases.Cell{Case: cases.ByName("fop_lat"), Size: 8}, 2, []float64{3, 2, 4})
	assert.Equal(t, Result{Case: "fop_lat", Size: 8, Value: 2, Unit: "us", Min: 2, Max: 4, Repeat: 3, Ranks: 2}, least)
	most := NewResult(cases.Cell{Case: cases.ByName("put_bw"), Size: 8}, 2, []float64{3, 2, 4})
	assert.Equal(t, 4.0, most.Value)
}

package report

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/compare"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/experiments/kernels"
	"github.com/onesided/rma/bench/internal/peers"
	"github.com/onesided/rma/bench/internal/plan/plantest"
)

func TestTheReportHasTheKernels(t *testing.T) {
	r := scriptedReport(t)
	o := &kernels.Options{Device: device.Shm, Rounds: 2, Ranks: 2, Prk: "DIR"}
	o.Choose(kernels.UsualSizes(o.Device), nil)
	peers := []*peers.Peer{{Name: "openmpi", Title: "Open MPI", Version: "4.1.4"}}
	all := []compare.Library{
		compare.Library{Name: compare.Ours, Run: plantest.Scripted(map[string][]float64{"gups:22": {66, 46}, "stencil_pscw:1000": {38000, 26000}, "stencil_fence:1000": {1, 2}, "transpose:1000": {30000, 33000}}, nil)},
		compare.Library{Name: "openmpi", Run: plantest.Scripted(map[string][]float64{"gups:22": {7, 9}, "stencil_pscw:1000": {39000, 27000}, "transpose:1000": {20000, 21000}},
			map[string]error{"stencil_fence": errors.New("signal 11 (Segmentation fault)")})},
	}
	r.steps, r.peers, r.o.dir = nil, peers, t.TempDir()
	r.addKernels(o, peers, []string{"MPICH is left out: no compiler"}, all)
	r.planKernels()
	require.Len(t, r.steps, 2*2*4)
	require.Positive(t, r.estimate())
	require.NoError(t, r.measure(t.Context(), func(string) {}))
	require.NoError(t, r.write(io.Discard))
	page, err := os.ReadFile(filepath.Join(r.o.dir, "report.html"))
	require.NoError(t, err)
	benchtest.CheckXML(t, string(page))
	for _, part := range []string{">Kernels</h2>", "<td>56.00 (46.00-66.00)</td>", "<td>&gt;= 2.00</td><td>met</td>", "<p>stencil_fence 1000, openmpi: signal 11 (Segmentation fault).</p>"} {
		assert.Contains(t, string(page), part)
	}
	results, err := os.ReadFile(filepath.Join(r.o.dir, "results.txt"))
	require.NoError(t, err)
	for _, line := range []string{
		"BenchmarkGups/device=shm/size=22-2\t1\t6.6e+07 op/s\n", "BenchmarkGups/device=shm/by=openmpi/size=22-2\t1\t9e+06 op/s\n",
		"BenchmarkStencilPscw/device=shm/size=1000-2\t1\t38000 MFlop/s\n", "BenchmarkTranspose/device=shm/size=1000-2\t1\t33000 MB/s\n",
	} {
		assert.Contains(t, string(results), line)
		assert.Regexp(t, benchmarkLine, strings.TrimSuffix(line, "\n"))
	}
}

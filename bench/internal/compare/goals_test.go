package compare

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/plan/plantest"
)

func TestGoalsDependOnTheDevice(t *testing.T) {
	for _, test := range []struct {
		device, name string
		size         int
		want         []string
	}{
		{device.Shm, "put_flush_lat", 8, []string{"<= 0.60"}},
		{device.Local, "put_flush_lat", 8, []string{"<= 0.60"}},
		{device.Shm, "create_time", 64, []string{"ours <= 1000000"}},
		{device.Shm, "passive_put_lat", 8, nil},
		{device.TCP, "put_flush_lat", 8, []string{"<= 0.95", "<= 1.20 of socket_lat"}},
		{device.TCP, "put_flush_lat", 1024, nil},
		{device.TCP, "get_flush_lat", 1024, []string{"<= 0.70"}},
		{device.TCP, "get_bw", 1048576, []string{">= 1.00", ">= 0.90 of socket_bw"}},
		{device.TCP, "passive_put_lat", 8, []string{"ours <= 200"}},
	} {
		var got []string
		for _, g := range goalsOf(test.device, cases.Cell{Case: cases.ByName(test.name), Size: test.size}) {
			got = append(got, g.String())
		}
		assert.Equal(t, test.want, got, "%s:%d with %s", test.name, test.size, test.device)
	}
}

func TestEveryGoalIsOfACell(t *testing.T) {
	kernels := []string{"gups", "stencil_pscw", "stencil_fence", "transpose"} // which are no cases
	for deviceName, all := range goals {
		assert.Contains(t, device.Names, deviceName)
		for _, b := range all {
			for name, limits := range b.limits {
				for size := range limits {
					if slices.Contains(kernels, name) {
						continue
					}
					require.NotNil(t, cases.ByName(name), name)
					assert.Contains(t, cases.ByName(name).Sizes, size, name)
					if standard := cases.ByName(b.of); (goal{of: b.of}).ofCase() {
						require.NotNil(t, standard, b.of)
						assert.Contains(t, standard.Sizes, size, "%s is measured for %s", b.of, name)
						assert.Equal(t, standard.Unit, cases.ByName(name).Unit, "%s of %s is a ratio", name, b.of)
					}
				}
			}
		}
	}
}

func TestWhatGoalsAreRatiosToIsMeasuredToo(t *testing.T) {
	beside := func(device string, j plan.Job) []string {
		standards := standardsOf(device, j)
		assert.Equal(t, 2, standards.Ranks)
		var names []string
		for _, one := range standards.Cells {
			names = append(names, one.String())
		}
		return names
	}
	assert.Equal(t, []string{"socket_lat:8", "socket_bw:65536"}, beside(device.TCP, plantest.Job(t, "fop_lat", "cas_lat", "put_bw:8,65536", "put_flush_lat:1024")), "once each")
	assert.Empty(t, beside(device.TCP, plantest.Job(t, "socket_lat:8")))
	assert.Empty(t, beside(device.Shm, plantest.Job(t, "fop_lat")))
}

func TestAGoalIsMetAtItsLimit(t *testing.T) {
	least, most := goal{limit: 2}, goal{limit: 2, atLeast: true}
	assert.True(t, least.met(2))
	assert.False(t, least.met(2.01))
	assert.True(t, most.met(2))
	assert.False(t, most.met(1.99))
}

package runner

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan/plantest"
	"github.com/onesided/rma/bench/internal/toggles"
)

func TestARankIsToldItsCells(t *testing.T) {
	o := &Options{Device: device.TCP, Repeat: 3, Shorten: 20, Timeout: 1e9, Allocs: true, Profile: "p", Settings: toggles.Settings{Given: []string{"sameop=on"}}}
	got := childArguments(o, plantest.Job(t, "put_bw:8", "fop_lat", "get_bw:8,64"))
	assert.Equal(t, "-device tcp -format json -timeout 1s -repeat 3 -shorten 20 -allocs -cpuprofile p -set sameop=on put_bw:8 fop_lat:8 get_bw:8,64", strings.Join(got, " "))

	o = &Options{Device: device.TCP, Timeout: 9e9, Settings: toggles.Settings{Given: []string{"tls=on"}}, Words: []string{"schemes"}, Arguments: []string{"-rounds", "4"}}
	o.Measure = func(context.Context, *Rank, []cases.Cell) error { return nil }
	got = childArguments(o, plantest.Job(t, "get_bw:8"))
	assert.Equal(t, "schemes -device tcp -format json -timeout 9s -rounds 4 -set tls=on get_bw:8", strings.Join(got, " "))
}

func TestRanksAreToldTheirDevice(t *testing.T) {
	job := plantest.Job(t, "fop_lat")
	t.Setenv(device.Variable, "of somebody else")
	for _, device := range []string{device.Shm, device.TCP} {
		o := &Options{Device: device}
		l, err := o.links(job)
		require.NoError(t, err)
		file, environment, err := l.of(1)
		require.NoError(t, err)
		assert.Contains(t, environment, "RMA_DEVICE="+device)
		assert.NoError(t, file.Close())
		assert.NoError(t, l.close())
	}
}

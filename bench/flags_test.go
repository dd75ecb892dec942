package main

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/experiments/schemes"
)

// planned returns the cells that a command line plans, as text, by job.
func planned(t *testing.T, world int, args ...string) ([][]string, error) {
	t.Helper()
	o, err := parse(args, io.Discard)
	require.NoError(t, err)
	jobs, err := o.Jobs(world)
	var text [][]string
	for _, j := range jobs {
		var cells []string
		for _, one := range j.Cells {
			cells = append(cells, one.String())
		}
		text = append(text, cells)
	}
	return text, err
}

func TestCellsAreThoseRequested(t *testing.T) {
	for _, test := range []struct {
		name  string
		world int
		args  []string
		want  [][]string
	}{
		{"a case's own sizes", 0, []string{"acc_flush_lat"},
			[][]string{{"acc_flush_lat:8", "acc_flush_lat:1024", "acc_flush_lat:8192", "acc_flush_lat:65536"}}},
		{"sizes for all", 0, []string{"-size", "8,24", "put_bw", "put_flush_lat"},
			[][]string{{"put_bw:8", "put_bw:24", "put_flush_lat:8", "put_flush_lat:24"}}},
		{"sizes of one case", 0, []string{"put_bw:64", "cas_lat"},
			[][]string{{"put_bw:64", "cas_lat:8"}}},
		{"a case of one size keeps it", 0, []string{"-size", "1024", "fop_lat", "put_bw"},
			[][]string{{"fop_lat:8", "put_bw:1024"}}},
		{"a size picks the cases that have it", 0, []string{"-size", "1000"},
			[][]string{{"put_flush_lat:1000", "get_flush_lat:1000", "acc_flush_lat:1000", "fop_lat:8", "cas_lat:8", "put_bw:1000", "get_bw:1000", "scatter_rate:1000", "update_rate:1000", "count_rate:1000", "count_each_rate:1000", "row_rate:1000", "mixed_rate:1000", "overlap_put_lat:1000", "changing_lat:1000", "put_target_cpu:1000", "acc_target_cpu:1000", "count_target_cpu:1000", "passive_put_lat:8",
				"fence_put_lat:1000", "fence_rate:1000", "pscw_put_lat:1000", "pscw_get_lat:1000", "pscw_both_lat:1000", "halo_lat:1000", "pattern16_bw:1000", "hashtable_insert_rate:1000", "hashtable_lookup_rate:1000",
				"msg_lat:1000", "msg_bw:1000", "allreduce_lat:1000", "bcast_lat:1000"},
				{"socket_lat:1000", "socket_bw:1000"}}},
		{"socket cases are a job of their own", 0, []string{"-n", "4", "fop_lat", "socket_lat:8", "put_bw:64", "socket_bw:64"},
			[][]string{{"fop_lat:8", "put_bw:64"}, {"socket_lat:8", "socket_bw:64"}}},
		{"a job for each number of ranks", 0, []string{"fop_lat", "create_time", "fence_scale:4"},
			[][]string{{"fop_lat:8"}, {"create_time:4", "fence_scale:4"}, {"create_time:16"}, {"create_time:64"}}},
		{"a case by bytes and one by ranks do not share a job", 0, []string{"allreduce_lat:8", "barrier_lat", "allreduce_scale:4"},
			[][]string{{"allreduce_lat:8"}, {"barrier_lat:2"}, {"barrier_lat:4", "allreduce_scale:4"}, {"barrier_lat:16"}, {"barrier_lat:64"}}},
		{"ranks by -n", 0, []string{"-n", "3", "fence_scale", "fop_lat"},
			[][]string{{"fence_scale:3"}, {"fop_lat:8"}}},
		{"ranks of a launcher", 5, []string{"fence_scale", "fop_lat", "idle_cpu"},
			[][]string{{"fence_scale:5", "fop_lat:8", "idle_cpu:5"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := planned(t, test.world, test.args...)
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestEveryCaseIsMeasuredWithoutArguments(t *testing.T) {
	jobs, err := planned(t, 0)
	require.NoError(t, err)
	cells := make(map[string]bool)
	for _, j := range jobs {
		for _, one := range j {
			cells[one] = true
		}
	}
	for _, c := range cases.All() {
		for _, size := range c.Sizes {
			assert.Contains(t, cells, (cases.Cell{Case: c, Size: size}).String())
		}
	}
}

func TestWrongUsageNamesWhatIsAllowed(t *testing.T) {
	for _, test := range []struct {
		world int
		args  []string
		says  string
	}{
		{0, []string{"put_latency"}, `there is no case "put_latency"; there are put_flush_lat, get_flush_lat`},
		{0, []string{"fop_lat", "fop_lat"}, "case fop_lat is named twice"},
		{0, []string{"fop_lat", "-repeat", "2"}, "-repeat: flags come before the cases"},
		{0, []string{"-size", "8,x"}, `size "x": sizes are whole numbers from 1`},
		{0, []string{"-size", "0"}, `size "0": sizes are whole numbers from 1`},
		{0, []string{"-size", "8,16", "put_bw:64,128"}, "-size 8,16 beside put_bw:64,128: allowed are -size for cases without sizes of their own, or sizes behind each case, as put_bw:8,1024"},
		{0, []string{"-size", "8", "put_bw:64", "get_bw"}, "-size 8 beside put_bw:64: allowed are"},
		{0, []string{"-peers", "-percentiles"}, "-percentiles is for runs without -peers"},
		{0, []string{"schemes", "-percentiles"}, "-percentiles is for runs without schemes"},
		{0, []string{"put_bw:-8"}, `size "-8": sizes are whole numbers from 1`},
		{0, []string{"-size", "8,16,8"}, "size 8 is given twice in 8,16,8"},
		{0, []string{"put_bw:8, 8"}, "size 8 is given twice in 8, 8"},
		{0, []string{"fop_lat:16"}, "fop_lat has no size 16: its size is always 8"},
		{0, []string{"acc_flush_lat:12"}, "acc_flush_lat has no size 12: allowed are multiples of 8 up to 67108864 bytes"},
		{0, []string{"pattern16_bw:2097153"}, "pattern16_bw has no size 2097153: allowed are 1 to 2097152 bytes"},
		{0, []string{"put_bw:100000000"}, "put_bw has no size 100000000: allowed are 1 to"},
		{0, []string{"-size", "8", "fence_scale"}, "the size of fence_scale is the number of ranks: instead of -size use -n, or name it as fence_scale:4,16"},
		{0, []string{"fence_scale:5000"}, "fence_scale:5000: the size is the number of ranks, allowed are 1 to 4096"},
		{0, []string{"idle_cpu:1"}, "idle_cpu:1: the size is the number of ranks, allowed are 2 to 4096"},
		{0, []string{"-n", "1", "put_flush_lat"}, "put_flush_lat needs at least 2 ranks, there is 1"},
		{1, []string{"put_flush_lat"}, "put_flush_lat needs at least 2 ranks, there is 1"},
		{3, []string{"fence_scale:4"}, "fence_scale:4: the size is the number of ranks, and the launcher started 3"},
		{2, []string{"socket_lat"}, "socket_lat starts its processes itself: run it without a launcher"},
		{0, []string{"socket_bw:100000000"}, "socket_bw has no size 100000000: allowed are 1 to 33554432 bytes"},
		{0, []string{"-n", "0"}, "-n 0: allowed are 1 to 4096 ranks"},
		{0, []string{"-device", "ib"}, `-device "ib": allowed are local, shm, tcp, ibv, sim:PROFILE`},
		{0, []string{"-device", "ibv", "-peers"}, "-peers is for -device local, shm and tcp: compare -device ibv"},
		{0, []string{"-device", "ibv", "-set", "tls=on"}, "-set tls=on is of what goes over TCP: say -device tcp too"},
		{0, []string{"-device", "sim"}, `-device "sim": allowed are local, shm, tcp, ibv, sim:PROFILE`},
		{0, []string{"-device", "sim:myrinet"}, `-device sim:myrinet: there is no profile "myrinet"; allowed are ideal, pcie-2005, pcix-2005, `},
		{0, []string{"-device", "sim:ideal", "-peers"}, "-peers is for real devices"},
		{0, []string{"schemes", "-device", "sim:ideal"}, "-device sim:ideal: schemes are compared by their time"},
		{0, []string{"-seed", "7"}, "-seed is for -device sim:PROFILE"},
		{0, []string{"-rails", "2"}, "-rails is for -device sim:PROFILE; real ranks have as many as RMA_ADDRESS lists addresses"},
		{0, []string{"-device", "sim:ideal", "-rails", "9"}, "-rails 9: allowed are 1 to 8"},
		{0, []string{"-trace", "t", "-device", "shm"}, "-trace is for -device tcp, ibv and sim:PROFILE: loads and stores of mapped memory are not traced"},
		{0, []string{"-trace", "t", "-device", "tcp", "-peers"}, "-trace is for runs without -peers"},
		{0, []string{"schemes", "-device", "sim:ideal", "-trace", "t"}, "-trace is for runs without schemes"},
		{0, []string{"-device", "local", "-set", "hugepages=off"}, "-set hugepages=off is of memory that processes share: say -device shm"},
		{0, []string{"-device", "sim:ideal", "-set", "tls=on"}, "-set tls=on is of what goes over TCP: say -device tcp too"},
		{0, []string{"-device", "sim:ideal", "-set", "batches=off"}, "-set batches=off is of what goes over TCP"},
		{0, []string{"-device", "shm", "-set", "pack=off"}, "-set pack=off is of what goes over links: say -device tcp, ibv or sim:PROFILE too"},
		{0, []string{"-repeat", "0"}, "-repeat 0: at least 1"},
		{0, []string{"-shorten", "0"}, "-shorten 0: at least 1"},
		{0, []string{"-peers", "-shorten", "9"}, "-shorten is for runs without -peers"},
		{0, []string{"-peers", "-rounds", "0"}, "-rounds 0: at least 1"},
		{0, []string{"-rounds", "2"}, "-rounds is for -peers and schemes"},
		{0, []string{"-timeout", "-1s"}, "-timeout -1s: more than 0"},
		{0, []string{"-allocs"}, "-allocs is for -format json"},
		{0, []string{"-allocs", "-format", "json", "-peers"}, "-allocs is for -format json"},
		{0, []string{"-format", "xml"}, `-format "xml": allowed are text and json`},
		{0, []string{"-set", "fast"}, `-set fast: there is no switch "fast"; there are copy, kernels, tls, singleelement`},
		{0, []string{"-set", "tls"}, "-set tls: allowed are tls=off, tls=on"},
		{0, []string{"-set", "fast=on"}, `-set fast=on: there is no switch "fast"; there are copy, kernels, tls, singleelement`},
		{0, []string{"-device", "shm", "-set", "tls=on"}, "-set tls=on is of what goes over TCP: say -device tcp too"},
		{0, []string{"-set", "sameop=yes"}, "-set sameop=yes: allowed are sameop=off, sameop=on"},
		{0, []string{"-set", "sameop=on", "-set", "sameop=off"}, "switch sameop is given twice"},
		{0, []string{"-peers", "-cpuprofile", "p"}, "-cpuprofile is for runs without -peers"},
		{0, []string{"-device", "tcp", "schemes"}, "schemes comes before the flags"},
		{0, []string{"-repeat", "3", "switches"}, "switches comes before the flags: bench switches [flags]"},
		{0, []string{"-n", "4", "scale"}, "scale comes before the flags"},
		{0, []string{"schemes", "-device", "shm"}, "-device shm: schemes are of what goes over a network or is simulated"},
		{0, []string{"schemes", "-peers"}, "-peers is for runs without schemes"},
		{0, []string{"schemes", "-repeat", "3"}, "-repeat is for runs without schemes"},
		{0, []string{"schemes", "-size", "8"}, "-size is for named cases"},
		{0, []string{"schemes", "-rounds", "0"}, "-rounds 0: at least 1"},
		{0, []string{"schemes", "-set", "pack=off"}, "-set pack=off: schemes sets that switch itself"},
		{0, []string{"schemes", "-set", "adapt=off"}, "-set adapt=off: schemes sets that switch itself"},
		{0, []string{"schemes", "fence_scale"}, "fence_scale is not a case of schemes"},
		{0, []string{"schemes", "passive_put_lat"}, "passive_put_lat is not a case of schemes"},
		{0, []string{"schemes", "socket_lat"}, "socket_lat is not a case of schemes"},
		{0, []string{"schemes", "bcast_lat"}, "bcast_lat is not a case of schemes"},
		{0, []string{"schemes", "msg_lat"}, "msg_lat is not a case of schemes"},
		{0, []string{"-frobnicate"}, "flag provided but not defined: -frobnicate; -h lists the flags"},
	} {
		t.Run(test.says, func(t *testing.T) {
			o, err := parse(test.args, io.Discard)
			if err == nil {
				_, err = o.Jobs(test.world)
			}
			require.ErrorIs(t, err, cli.ErrUsage)
			assert.Contains(t, err.Error(), "bench: ")
			assert.Contains(t, err.Error(), test.says)
		})
	}
}

// RMA_DEVICE does not change the default of -device.
func TestTheEnvironmentDoesNotChangeTheDevice(t *testing.T) {
	t.Setenv(device.Variable, device.TCP)
	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, device.Default(), o.Device)
}

func TestALauncherHasNoPeersAndNoSchemesOfMappedMemory(t *testing.T) {
	o, err := parse([]string{"-peers"}, io.Discard)
	require.NoError(t, err)
	assert.EqualError(t, o.Refuses("shm"), "bench: -peers starts ranks itself: run it without a launcher")

	o, err = parse([]string{"schemes"}, io.Discard)
	require.NoError(t, err)
	assert.NoError(t, o.Refuses("tcp"))
	assert.NoError(t, o.Refuses("ibv"))
	err = o.Refuses("shm")
	assert.EqualError(t, err, "bench: schemes are of what goes over a network, and the ranks use shm: have the launcher give them RMA_DEVICE=tcp or ibv")
	assert.ErrorIs(t, err, cli.ErrUsage)
}

// A rank parses the flags with which bench schemes starts it.
func TestRanksReadThatTheyCompareSchemes(t *testing.T) {
	child, err := parse([]string{"schemes", "-device", "tcp", "-format", "json", "-timeout", "9s", "-rounds", "4", "-set", "tls=on", "get_bw:8"}, io.Discard)
	require.NoError(t, err)
	assert.True(t, child.schemes)
	assert.Equal(t, 4, child.rounds)
	assert.Equal(t, []string{"-rounds", "4"}, child.Arguments)
}

func TestPatternsAreCasesOfSchemes(t *testing.T) {
	o, err := parse([]string{"schemes"}, io.Discard)
	require.NoError(t, err)
	assert.True(t, o.schemes)
	assert.Equal(t, device.TCP, o.Device)
	jobs, err := o.Jobs(0)
	require.NoError(t, err)
	cells := 0
	for _, j := range jobs {
		cells += len(j.Cells)
	}
	assert.Equal(t, len(schemes.Patterns())+3, cells, "one of them has four sizes")
}

package regression

import (
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/gate"
	"github.com/onesided/rma/bench/internal/stats"
)

// A cell is a cell of the gate. Loops is its first -repeat. With it a measurement takes about slice, or less
// if a busy machine may make it a hundred times slower.
type cell struct {
	device, name string
	size, loops  int
}

// slice is about the time of a measurement.
const slice = 500 * time.Millisecond

// allCells returns the cells of the gate. Loops with many iterations are easily disturbed. So a latency over TCP has
// a size for which few iterations are enough.
func allCells() []cell {
	const ndr, pcie = device.Sim + "ndr-2024", device.Sim + "pcie-2005"
	return []cell{
		{device.Shm, "put_flush_lat", 8, 300},
		{device.Shm, "get_flush_lat", 1024, 100},
		{device.Shm, "pscw_put_lat", 8, 5},
		{device.Shm, "msg_lat", 8, 5},
		{device.Shm, "scatter_rate", 1000, 50},
		{device.Shm, "update_rate", 1000, 30},
		{device.Shm, "put_bw", 65536, 5},
		{device.Shm, "msg_bw", 65536, 1},
		{device.Shm, "barrier_lat", 2, 5},
		{device.Shm, "allreduce_scale", 2, 5},
		{device.Shm, "hashtable_insert_rate", 1000, 15},
		{device.Shm, "hashtable_lookup_rate", 1000, 15},

		{device.TCP, "put_flush_lat", 16384, 10},
		{device.TCP, "acc_flush_lat", 16384, 10},
		{device.TCP, "fence_put_lat", 16384, 10},
		{device.TCP, "msg_lat", 16384, 5},
		{device.TCP, "scatter_rate", 1000, 10},
		{device.TCP, "update_rate", 1000, 20},
		{device.TCP, "put_bw", 65536, 2},
		{device.TCP, "get_bw", 65536, 2},
		{device.TCP, "allreduce_scale", 2, 6},
		{device.TCP, "hashtable_insert_rate", 1000, 6},
		{device.TCP, "hashtable_lookup_rate", 1000, 5},

		{ndr, "put_flush_lat", 8, device.SimulatedLoops},
		{ndr, "scatter_rate", 1000, device.SimulatedLoops},
		{ndr, "put_bw", 65536, device.SimulatedLoops},
		{ndr, "fence_scale", 16, device.SimulatedLoops},
		{ndr, "hashtable_insert_rate", 1000, device.SimulatedLoops},
		{pcie, "pscw_put_lat", 8, device.SimulatedLoops},
		{pcie, "pattern16_bw", 65536, device.SimulatedLoops},
	}
}

// cell returns the cell in the form of package gate.
func (c cell) cell() gate.Cell {
	unit := cases.ByName(c.name).Unit
	return gate.Cell{
		Device: c.device, Case: c.name, Size: c.size,
		Unit: unit, MoreIsBetter: stats.MoreIsBetter(unit), Exact: strings.HasPrefix(c.device, device.Sim), Loops: c.loops,
	}
}

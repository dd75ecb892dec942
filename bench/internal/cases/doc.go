// Package cases has the cases of bench: what each measures, the steps of its loops, and the memory that these use.
//
// A Case at a size is a Cell. Its Kind says which synchronization surrounds its loop, and whether it is on a window, on a
// hash table, or on neither. Ranks make Buffers for cells of kinds that share them, and call the steps of Rank.Step
// between Buffers.Begin and Buffers.End. Displacements, sizes and iterations are those of the programs of the peers,
// package peers.
//
//	c := cases.ByName("put_flush_lat")
//	fmt.Println(cases.Cell{Case: c, Size: 8}, c.Unit)
//
// # Invariants
//
//   - A step uses no byte of the window and of the buffer beyond what the reach of its case says.
//   - A step that is timed allocates no memory.
//   - Every rank makes Buffers for the same cells: to make them is collective.
package cases

import _ "github.com/onesided/rma/internal/platform"

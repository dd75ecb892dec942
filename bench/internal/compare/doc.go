// Package compare measures cases by several libraries in turns, and judges the ratios of ours to the others by goals.
//
// The speed of a machine may change within a minute. So what is compared is measured directly after each other, in
// rounds, and only values of one round are divided by each other.
//
//	rows, err := compare.Run(ctx, device.Shm, jobs, []compare.Library{ours, openmpi}, 3, func(string) {})
//
// # Invariants
//
//   - The first Library is ours. A round goes case by case, and every other round backward.
//   - A Library that was too slow for a case is not run for it again.
//   - If ctx ends a comparison, its rows have the results so far.
package compare

import _ "github.com/onesided/rma/internal/platform"

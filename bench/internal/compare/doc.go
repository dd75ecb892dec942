// Package compare measures cases by several libraries alternately, and judges the ratios of ours to the others by
// goals.
//
// The speed of a machine may change within a minute. So what is compared is measured directly after each other, in
// rounds, and only values of one round are divided by each other.
//
//	rows, err := compare.Run(ctx, device.Shm, jobs, []compare.Library{ours, openmpi}, 3, func(string) {})
//
// With -peers a round goes case by case. The library and then each peer measure a case, in their own processes with
// all sizes, before the next case. Every other round has the opposite order. The speed of machines changes by more
// than the differences to be measured. So a ratio is only taken within a round, between values measured seconds
// apart. It is the ratio to the peer that was better in that round, and the median of the rounds' ratios counts. It
// is printed with the lowest and the highest. The columns of absolute figures are separate medians, whose ratio may
// differ from that.
//
// A run that is ended early prints the table of the completed measurements, and lists the missing ones. A peer whose
// compiler fails is left out, also of kernels, and the table says why.
//
// Goals depend on the device. If a goal is a ratio to another case, that case is measured directly beside its own
// case in each round.
//
// # Invariants
//
//   - The first Library is ours. A round goes case by case, and every other round backward.
//   - A Library that was too slow for a case is not run for it again.
//   - If ctx ends a comparison, its rows have the results so far.
package compare

import _ "github.com/onesided/rma/internal/platform"

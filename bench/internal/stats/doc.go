// Package stats has the units of benchmarks, and the values of a measurement over the rounds of a comparison.
//
// The speed of a machine changes between rounds. So only values of one round are divided by each other, and the median
// of the ratios counts:
//
//	ratios := stats.Ratios(ours, theirs)
//	fmt.Println(*ratios.Median)
package stats

import _ "github.com/onesided/rma/internal/platform"

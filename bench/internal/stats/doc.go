// Package stats has the units of values, such as [Microseconds] and [MegabytesPerSecond], and the values of a
// measurement over the rounds of a comparison.
//
// The speed of a machine changes between rounds. So only values of one round are divided by each other, and the median
// of the ratios counts:
//
//	if median := stats.Ratios(ours, theirs).Median; median != nil {
//		fmt.Println(*median)
//	}
package stats

import _ "github.com/onesided/rma/internal/platform"

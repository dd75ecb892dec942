// Package histogram counts how long operations took, for percentiles.
//
//	var h histogram.Histogram
//	h.Add(took, 1)
//	tail := h.Quantile(0.999)
//
// # Invariants
//
// A Histogram has a fixed size and Add allocates nothing, so that it can count during a measurement. A quantile is
// never shorter than the duration that it stands for, and at most a sixteenth longer.
package histogram

import _ "github.com/onesided/rma/internal/platform"

package histogram_test

import (
	"fmt"
	"time"

	"github.com/onesided/rma/internal/histogram"
)

func Example() {
	var h histogram.Histogram
	h.Add(8*time.Nanosecond, 99)
	h.Add(15*time.Nanosecond, 1)
	fmt.Println(h.Total(), h.Quantile(0.5), h.Quantile(1))
	// Output: 100 8ns 15ns
}

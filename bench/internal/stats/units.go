package stats

// The units of values, as they are printed.
const (
	Microseconds = "us"
	Nanoseconds  = "ns"
	Megabytes    = "MB/s"
	Operations   = "Mop/s"
	Megaflops    = "MFlop/s"
	Percent      = "%"
)

// MoreIsBetter reports whether the unit is that of a rate or bandwidth, and not that of a time or share.
func MoreIsBetter(unit string) bool {
	return unit == Megabytes || unit == Operations || unit == Megaflops
}

package stats

// The units of values, as they are printed. A megabyte is 10^6 bytes.
const (
	Microseconds            = "us"
	Nanoseconds             = "ns"
	MegabytesPerSecond      = "MB/s"
	MegaoperationsPerSecond = "Mop/s"
	MegaflopPerSecond       = "MFlop/s"
	Percent                 = "%"
)

// MoreIsBetter reports whether the unit is that of a rate or bandwidth, and not that of a time or share.
func MoreIsBetter(unit string) bool {
	return unit == MegabytesPerSecond || unit == MegaoperationsPerSecond || unit == MegaflopPerSecond
}

// Cost returns values of a unit as values that are proportional to time.
func Cost(unit string, values Series) Series {
	if !MoreIsBetter(unit) {
		return values
	}
	ones := NewSeries(len(values.Values))
	for round := range ones.Values {
		ones.Set(round, 1)
	}
	return Ratios(ones, values)
}

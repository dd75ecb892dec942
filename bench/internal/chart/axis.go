package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// mostTicks is the greatest number of ticks of an axis.
const mostTicks = 12

// An Axis maps values to positions.
type Axis struct {
	// Low and High are the values at the ends.
	Low, High   float64
	Logarithmic bool
	// Decimal puts the ticks of a logarithmic axis at powers of ten, not of two.
	Decimal bool
	// Marks are the ticks of the axis, or nil to let it choose. Format formats their values.
	Marks  []float64
	Format func(float64) string

	// from is the position of Low, and to that of High. extent returns the length that a text covers on the axis.
	// Chart.place sets them.
	from, to float64
	extent   func(text string) float64
}

// at returns the position of v. A value beyond the axis gets the position of its end.
func (a Axis) at(v float64) float64 {
	low, high := a.Low, a.High
	v = min(max(v, low), high)
	if a.Logarithmic {
		v, low, high = math.Log2(v), math.Log2(low), math.Log2(high)
	}
	return a.from + (v-low)/(high-low)*(a.to-a.from)
}

// ticks returns the values of the ticks.
func (a Axis) ticks() []float64 {
	switch {
	case a.Marks != nil:
		return a.Marks
	case !a.Logarithmic:
		return a.most(a.linearTicks)
	case !a.Decimal:
		return a.withEnds(a.most(a.binaryTicks))
	}
	if ticks := a.most(a.decimalTicks); len(ticks) > 1 {
		return ticks
	}
	return a.most(a.linearTicks)
}

// most returns the first of ticks' results for which there is room. ticks returns fewer ticks for a greater fewer.
func (a Axis) most(ticks func(fewer int) []float64) []float64 {
	for fewer := 0; ; fewer++ {
		if some := ticks(fewer); len(some) < 2 || a.hasRoom(some) {
			return some
		}
	}
}

// hasRoom reports whether the texts of ticks do not touch.
func (a Axis) hasRoom(ticks []float64) bool {
	for i, v := range ticks[1:] {
		if math.Abs(a.at(v)-a.at(ticks[i])) < (a.extent(a.Format(v))+a.extent(a.Format(ticks[i])))/2 {
			return false
		}
	}
	return len(ticks) <= mostTicks
}

// withEnds adds the ends of the axis to ticks, if there is room and the ends are round or ticks are few.
func (a Axis) withEnds(ticks []float64) []float64 {
	if len(ticks) == 0 {
		ticks = []float64{a.Low}
	}
	wanted := func(v float64) bool { return len(ticks) < 2 || !strings.Contains(a.Format(v), ".") }
	if more := slices.Concat([]float64{a.Low}, ticks); wanted(a.Low) && a.hasRoom(more) {
		ticks = more
	}
	if more := slices.Concat(ticks, []float64{a.High}); wanted(a.High) && a.hasRoom(more) {
		ticks = more
	}
	return ticks
}

// binaryTicks returns powers of two, or of a power of two.
func (a Axis) binaryTicks(fewer int) []float64 {
	var ticks []float64
	step := float64(fewer + 1)
	for power := step * math.Ceil(math.Log2(a.Low)/step); power <= math.Log2(a.High); power += step {
		ticks = append(ticks, math.Exp2(power))
	}
	return ticks
}

// decimalTicks returns powers of ten, with their double and fivefold or without, or powers of a power of ten.
func (a Axis) decimalTicks(fewer int) []float64 {
	times, step := []float64{1}, float64(max(fewer, 1))
	if fewer == 0 {
		times = []float64{1, 2, 5}
	}
	var ticks []float64
	for power := step * math.Floor(math.Log10(a.Low)/step); power <= math.Log10(a.High)+1e-9; power += step {
		for _, t := range times {
			if v := t * math.Pow(10, power); v >= a.Low*0.9999 && v <= a.High*1.0001 {
				ticks = append(ticks, v)
			}
		}
	}
	return ticks
}

// linearTicks returns multiples of a step.
func (a Axis) linearTicks(fewer int) []float64 {
	var ticks []float64
	step := NiceStep((a.High - a.Low) * math.Exp2(float64(fewer)))
	for n := math.Ceil(a.Low / step); n*step <= a.High+step/1000; n++ {
		ticks = append(ticks, n*step)
	}
	return ticks
}

// DecimalAxis returns a logarithmic axis for low to high, both above 0. Its ends are 1, 2 or 5 times a power of ten.
func DecimalAxis(low, high float64) Axis {
	a := Axis{Logarithmic: true, Decimal: true}
	a.Low = math.Pow(10, math.Floor(math.Log10(low)))
	for _, t := range []float64{5, 2} {
		if t*a.Low <= low {
			a.Low *= t
			break
		}
	}
	top := math.Pow(10, math.Floor(math.Log10(high)))
	for _, t := range []float64{1, 2, 5, 10, 20} {
		if a.High = t * top; a.High >= high && a.High > a.Low {
			break
		}
	}
	return a
}

// NiceStep returns 1, 2 or 5 times a power of ten, of which about six make the extent.
func NiceStep(extent float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(extent/6)))
	for _, times := range []float64{1, 2, 5} {
		if extent/(times*power) <= 7.5 {
			return times * power
		}
	}
	return 10 * power
}

// PlainNumber formats a value on an axis.
func PlainNumber(v float64) string {
	if text := fmt.Sprintf("%.6g", v); !strings.Contains(text, "e") {
		return text
	}
	if v >= 1e6 && v < 1e7 {
		return fmt.Sprintf("%.0f", v)
	}
	// The exponent has no plus and no leading zeros: 2e7, 5e-7.
	number, power, _ := strings.Cut(fmt.Sprintf("%.2e", v), "e")
	number = strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
	return number + "e" + strings.Replace(strings.TrimPrefix(strings.TrimPrefix(power, "+"), "0"), "-0", "-", 1)
}

// ByteUnits formats a size in bytes with a unit of a power of two. KB and MB would be powers of ten.
func ByteUnits(v float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v = math.Round(v)
	for v >= 1024 && len(units) > 1 {
		v, units = v/1024, units[1:]
	}
	return fmt.Sprintf("%.4g %s", v, units[0])
}

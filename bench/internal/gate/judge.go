package gate

import (
	"fmt"
	"math"
)

// A Verdict is the result of a gate for a cell.
type Verdict int

const (
	Undecided Verdict = iota
	OK                // not slower by more than the limit
	Slower            // by more than the limit
	Near              // measured well, and too close to the limit
	Noisy             // the cell differs too much from round to round
	Unsound           // the earlier version differs from itself by more than the limit
	Missing           // the earlier version lacks it
	OldFailed         // the earlier version cannot be measured
	NewFailed         // the earlier version can be measured, and the later one cannot
)

// fails reports whether a cell with this verdict makes the gate fail.
func (v Verdict) fails() bool { return v == Slower || v == NewFailed }

// A Judgement is a verdict and its reasons. Its figures are factors of cost: 1.1 is 10 % slower, 0.9 is 10 % faster.
type Judgement struct {
	Verdict Verdict
	Change  float64 // NaN without a round
	// Lower and Upper bound the change. They have the error rates of Alarm and Miss.
	Lower, Upper float64
	// Noise is the change in the median of the rounds when the same program is measured again, at least 1.
	Noise float64
	// Seen is the smallest change that would have been found slower. It is Inf after too few rounds.
	Seen float64
}

// A level holds the limit and the error rates of a look.
type level struct{ limit, alarm, miss float64 }

// judge judges a cell by the logarithms of its change in each round, and by those between the copies of the earlier
// version. last is set if no further round follows.
func (l level) judge(change, noise []float64, last bool) Judgement {
	s, own := SignedRank(change), SignedRank(noise)
	limit := math.Log1p(l.limit)
	shift, lower, upper := s.Shift(), s.Lower(l.alarm), s.Upper(l.miss)
	j := Judgement{
		Change: math.Exp(shift), Lower: math.Exp(lower), Upper: math.Exp(upper),
		Noise: math.Exp(middleSize(noise)), Seen: math.Exp(limit + shift - lower),
	}
	if len(change) == 0 {
		j.Seen = math.Inf(1)
	}
	// If the same program differs from itself, the measurement is wrong.
	sound := own.Lower(l.alarm) <= limit && own.Upper(l.alarm) >= -limit
	switch {
	case lower > limit && sound:
		j.Verdict = Slower
	case upper <= limit && sound:
		j.Verdict = OK
	case !last:
	case !sound:
		j.Verdict = Unsound
	case own.Shift()-own.Lower(l.alarm) <= limit:
		j.Verdict = Near
	default:
		j.Verdict = Noisy
	}
	return j
}

// judgeExact judges a change without noise.
func (l level) judgeExact(change float64) Judgement {
	j := Judgement{Verdict: OK, Change: change, Lower: change, Upper: change, Noise: 1, Seen: 1 + l.limit}
	// A change that exceeds the limit only by rounding is at the limit.
	if change > (1+l.limit)*(1+1e-9) {
		j.Verdict = Slower
	}
	return j
}

// middleSize returns the median of the absolute values, or NaN without values.
func middleSize(values []float64) float64 {
	sizes := make([]float64, 0, len(values))
	for _, v := range values {
		sizes = append(sizes, math.Abs(v))
	}
	return median(sizes)
}

// percent formats a factor as a change in percent.
func percent(factor float64) string { return fmt.Sprintf("%.1f %%", (factor-1)*100) }

// Says returns the verdict in words, for a limit.
func (j Judgement) Says(limit float64) string {
	most := fmt.Sprintf("%g %%", math.Round(limit*1e4)/100)
	switch j.Verdict {
	case OK:
		return "ok"
	case Slower:
		return "SLOWER"
	case Near:
		return fmt.Sprintf("too near to %s to tell", most)
	case Noisy:
		if math.IsInf(j.Seen, 1) {
			return fmt.Sprintf("too few rounds to tell at %s", most)
		}
		return fmt.Sprintf("too noisy to tell at %s; sees %s", most, percent(j.Seen))
	case Unsound:
		return "old differs from itself"
	case Missing:
		return "new"
	case OldFailed:
		return "fails before"
	case NewFailed:
		return "FAILS"
	}
	return "undecided"
}

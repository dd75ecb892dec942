// Package gate decides whether a program has become slower than an earlier version of it.
//
// It measures cells (a case at a size on a device) of three programs alternately: Old, Copy and New. Copy is the same
// program as Old, so their difference is noise. A round measures an undecided cell once on each side, in an order
// drawn anew. The next round is that of the cell on which the least time was spent. A measurement is the best of
// several loops, because disturbances only slow a loop. The number of loops is such that a measurement takes about as
// long as the plan says.
//
//	rows, err := gate.Run(ctx, plan, cells, runner, time.Now, nil)
//	for _, row := range rows {
//		fmt.Println(row.Cell, row.Judgement.Verdict, row.Judgement.Change)
//	}
//
// # Method
//
// The speed of a machine may change within minutes by more than the differences to be measured. So a change is only
// taken within a round, as the logarithm of New's cost to Old's. A cost is a time, or the inverse of a rate: more is
// worse.
//
// If New is as fast as Old, the drawn order makes both values of a round exchangeable. Then the logarithm is as
// likely to be x as -x, whatever the distribution of the noise. If the signs of the logarithms are independent, too,
// the signed-rank statistic of Wilcoxon has an exactly known distribution. Inverted, it gives the bounds of a
// confidence interval around the estimate of Hodges and Lehmann (SignedRank). A change that multiplies the cost
// shifts the logarithms, and the bounds with them. The bounds are for such a change. A change that adds a rare delay,
// for example, has another distribution.
//
// The signs are not quite independent. The orders come in blocks of six rounds, each order once, so that the effects
// of the order cancel within a block. That reduces the variance of the statistic, so the bounds are conservative:
// they are wrong less often than their error rates say.
//
// A cell is judged at the looks of a plan: after 8 rounds, then after half as many rounds again. It is
//
//   - Slower if the lower bound of the change is above the limit,
//   - OK if the upper bound is at most the limit,
//   - otherwise undecided, and measured in further rounds.
//
// When the rounds or the time are used up, an undecided cell is Noisy if the difference of Old and Copy is undecided
// at the limit, too. Otherwise it is Near. A cell is Unsound if Old and Copy differ, which is an error of the
// measurement. None of these is a failure of the cell. Doubtful counts them, for a caller that gives no verdict if
// they are many.
//
// A measurement that fails is repeated once, before the cell is given up.
//
// # Errors
//
// Each bound has an error rate. The rates of all looks, and for lower bounds of all cells, add up to a rate for the
// whole. Alarm is the probability that a gate without a cell slower than the limit calls any cell slower. Miss is the
// probability that a given cell slower than the limit is OK. The sums hold however cells and looks depend on each
// other.
//
// Exact cells are measured in virtual time. They have one value on each side, and no error rate.
//
// No interval shows whether a difference comes from the code or from its place in memory. Builds of different sources
// differ in both; Old and Copy differ in neither.
package gate

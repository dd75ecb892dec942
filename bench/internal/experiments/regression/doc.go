// Package regression reports whether cells are slower than at an earlier commit, by the method of package gate.
//
// It builds bench of that commit in a worktree of its own, which it removes, and bench of the work tree as it is.
//
// The command gate measures 30 cells by the program of an earlier commit and by the one of this work tree, alternately.
// The run fails if a cell is slower than before by more than 5 % (-limit). The earlier program is built in a git
// worktree, which is removed before the first measurement. A line of the table is
//
//	device case size unit old new ratio interval noise rounds verdict
//
// The ratio is that of the costs within a round: 1.10 is 10 % slower whatever the unit. A cell fails by the lower
// bound of its interval, and passes by the upper bound. The noise is the difference of two measurements of the
// earlier program in each round. Package bench/internal/gate has the method and its error rates. If no cell is slower
// by more than the limit, a run fails with a probability of at most 1 %. A cell that is slower passes with one of at
// most 5 %.
//
// A cell is measured until it is decided, or until the rounds (-rounds) or the time (-minutes) are used up. Then it
// is no failure, and its verdict states the slowdown that would have been found. A busy machine takes more rounds, or
// leaves more cells undecided. Cells in virtual time are exact, and are measured once. A cell that the earlier
// program does not have is new. A cell that the earlier program cannot measure is no failure either; one that only
// the later program cannot measure is.
package regression

import _ "github.com/onesided/rma/internal/platform"

// Package schemes compares the schemes of arranging the operations of an epoch.
//
// A cell is measured with each scheme, in a window of its own. Within a round the loops of all schemes follow each
// other in less time than a machine keeps its speed, and only times of one round are compared.
//
//	schemes.Prepare(options, rounds) // the options of package runner now measure cells so
//
// The command schemes compares the schemes of arranging the operations of an epoch (scheduler.Scheme), over TCP, with
// -device ibv over an RDMA card, or with -device sim:PROFILE in virtual time. It shows what each contributes, and
// whether the adaptive mode finds the best. Each case is measured as a pattern of epochs, by separate ranks, with all
// schemes one after the other. Each scheme has its own window, which it keeps, and runs for a fifth of a second before
// the first round. In a round each has one loop of about 20 ms, so that the machine has the same speed for all of them.
// A line of output is then
//
//	case size value unit scheme ratio
//
// with medians of the rounds. The ratio is that of the time to the time of the best fixed scheme in the same round:
// more is worse whatever the unit. That scheme is the same for all rounds. A table with all results follows. The
// command takes about two minutes, and up to a gigabyte of memory for the windows.
package schemes

import _ "github.com/onesided/rma/internal/platform"

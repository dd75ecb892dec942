// Package oracle draws random programs for windows, runs them, and reports whether their results are allowed. It is
// for tests of package window, over any device.
//
//	p := oracle.Draw(seed, oracle.Limits{})
//	err := world.Run(ctx, p.Ranks, func(ctx context.Context, w *world.World) error {
//		return oracle.Run(ctx, w, p, oracle.Options{})
//	})
//	if err != nil {
//		small := oracle.Shrink(p, fails)
//		fmt.Println(small) // a script, which Parse reads
//	}
//
// # Programs
//
// A Program is data. Draw makes one from a seed. It has windows of all element types, made by Allocate and Create,
// with any options. It has phases, each with any synchronization of each window. And it has steps, which are the
// calls of one member of a rank. Members are goroutines of a rank that share its windows and epochs.
//
// Barriers separate phases, and at each barrier all memory is examined. A loose phase has neither after it: only the
// synchronization of the windows separates it from the next phase. In a hasty phase each call that may block is first
// made with an ended context, and then again, as package window allows.
//
// Some steps are calls that must be rejected. The class of the error follows from the open epochs and from the
// arguments; there must be only one reason. Such calls must change nothing, which is checked like everything else.
//
// A script has a line for each window, phase, synchronization and step:
//
//	ranks 2
//	window int64 counts=8,8 slots=1
//	phase hasty
//	sync w0 lock
//	0 lock w0 on=1 exclusive
//	0 put w0 int64 on=1 at=3 n=2 fill=7      # writes 7 and 8 to elements 3 and 4 of rank 1
//	0 unlock w0 on=1
//	1.1 refused lock w0 on=9 shared          # member 1 of rank 1
//	phase
//	sync w0 start test 0>1 1>                # rank 0 starts an epoch to rank 1, rank 1 to no rank
//	0 putnotify w0 int64 on=1 n=1 fill=1
//	1 waitnotify w0
//	1 load w0 int64 n=1
//
// The operands of a step are the numbers from fill on, converted to its element type. Layouts are
// BLOCKSxLENGTH/STRIDE, or OFFSET+LENGTH of each block with commas.
//
// # The model
//
// The model knows no protocol. It is what the documentation of package window says, for each element by itself: the
// accesses of an element happen one at a time, in some order. The order respects
//
//   - the order of phases,
//   - an access of a member after its own earlier accesses that a flush, an unlock, or a wait for a request has
//     completed; a local completion completes reads,
//   - the program order of a member's accumulates to the element, unless the window was made with Unordered,
//   - a load after the notified puts for which its rank has waited.
//
// One such order must explain all results of reads and the contents of memory. The model searches for it, so a set of
// outcomes is allowed if ranks combine or swap concurrently. Lock epochs of one target that access the same elements,
// some of them exclusive, happen one at a time as a whole. One order of them must explain all of these elements
// together. A search has a bound. A search that reaches it returns ErrUndecided, which should not happen for a drawn
// program.
//
// So the model is sound, and nearly sharp: it knows no order between elements that no exclusive lock protects.
//
// # Legal programs
//
// Check reports why a program is not legal. It contains the rules. Two conflicting accesses that are not ordered are
// illegal, unless both belong to the accumulate family, or are in lock epochs that exclude each other. Programs that
// could wait forever are illegal, too. So locks are taken in the order of windows and targets. A rank that waits for
// notifications holds no lock and sends no more notifications in the phase. All programs that are drawn or parsed
// have passed Check, and so have all that Shrink tries.
//
// # Running
//
// Run records the results of steps and the changes of memory until the program has ended. Then rank 0 gathers and
// compares them. Buffers have guards, and are overwritten as soon as they belong to the program again. So a library
// that reads them late, or writes to them, is detected.
//
// Run depends on no clock, no map order and no chance. On a device in virtual time, whose ranks are coroutines, the
// same seed gives the same events. There Options.Concurrent must not be set, and the members of a rank take turns.
//
// # Tests
//
// The tests of this package run random programs on every device. Package internal/testsize determines how many, and
// from which seed on. RMA_TEST_SIZE=20 runs 20 times as many as a plain run. A failure names its seed, and
//
//	RMA_TEST_SEED=7 RMA_TEST_SIZE=0.01 go test ./internal/oracle -run 'TestPrograms/cards'
//
// runs the program of seed 7 again. Programs that have failed once are kept in testdata. RUNS.md lists long runs.
//
// The programs of testdata/combinations are the same on all devices. Together they have every mode, call and element
// type. A plain run carries out some of them under each combination of the scheduler's switches, each on one device
// or another. From RMA_TEST_SIZE=16 on every device has all of them under all combinations.
package oracle

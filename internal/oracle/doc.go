// Package oracle draws random programs for windows, runs them, and tells whether what they
// have seen is allowed. It is for tests of package window, over any device.
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
// A Program is data. Draw makes one of a seed: windows of all element types, of memory of
// both sorts, with any options; phases, each under any synchronization of each window; and
// steps, which are the calls of one member of a rank. Members are goroutines of a rank that
// share its windows and epochs. Phases are separated by barriers, at which all memory is
// looked at, but for those that are loose: behind these only the synchronization of the
// windows keeps apart what may not meet. In a hasty phase each call that may block is made
// with an ended context first, and then again, as package window promises that it can be.
//
// Some steps are calls that must be refused. Which class of error each gives follows from
// the epochs that are open and from its arguments; there must be one reason alone. They must
// change nothing, which is seen like everything else.
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
//	sync w0 start test 0>1 1>                # rank 0 starts an epoch to rank 1, rank 1 to nobody
//	0 putnotify w0 int64 on=1 n=1 fill=1
//	1 waitnotify w0
//	1 load w0 int64 n=1
//
// The operands of a step are the numbers from fill on, converted to its element type.
// Layouts are BLOCKSxLENGTH/STRIDE, or OFFSET+LENGTH of each block with commas.
//
// # The model
//
// The model knows no protocol. It is what the documentation of package window says, of each
// element by itself: the accesses of an element are done one at a time, in some order that
// keeps
//
//   - phases in their order,
//   - an access of a member behind those of its own that a flush, an unlock, or a wait for
//     a request has completed, where a local completion completes what reads,
//   - the program order of what a member accumulates to the element, unless the window was
//     made with Unordered,
//   - a load behind the notified puts that its rank has waited for.
//
// What was read and what is in memory must be explained by one such order: that is searched
// for, so a set of outcomes is allowed where ranks combine or swap concurrently. Lock epochs
// of one target of which some are exclusive, and which access the same elements, are done
// one at a time as a whole: one order of them must explain all of these elements together.
// A search for an order has a bound. One that comes to it is ErrUndecided, which no program
// that is drawn should be.
//
// So the model is sound, and nearly sharp: between elements that no exclusive lock protects
// it knows no order.
//
// # Legal programs
//
// Check says why a program is not legal. It is where the rules are: accesses that conflict,
// of which none is ordered before the other, are illegal unless both are of the accumulate
// family, or in lock epochs that exclude each other. So are programs that could wait for
// ever: locks are taken in the order of windows and targets, and a rank that waits for
// notifications holds no lock and sends no more of them in the phase. All that is drawn and
// parsed has passed it, and all that Shrink tries.
//
// # Running
//
// Run keeps what steps have read, and what has changed of memory, until the program has ended.
// Then rank 0 gathers it and compares. Buffers have guards, and are filled with something
// else as soon as they are the program's again, so that a library which reads them late,
// or writes to them, is found out.
//
// Run depends on no clock, no map order and no chance: on a device in virtual time, whose
// ranks are coroutines, the same seed gives the same events. There Options.Concurrent is
// not set, and the members of a rank take turns.
//
// # Tests
//
// The tests of this package run random programs on every device. Package internal/testsize says how many and from which
// seed on: a plain run has 312, and RMA_TEST_SIZE=20 has 20 times as many. A failure names its seed, and
//
//	RMA_TEST_SEED=7 RMA_TEST_SIZE=0.01 go test ./internal/oracle -run 'TestPrograms/cards'
//
// runs the program of seed 7 again. A program that has failed once is kept in testdata. RUNS.md lists long runs.
//
// The programs of testdata/combinations are the same on all devices. They have together every mode, call and element
// type. A plain run carries out some of them under each combination of the scheduler's switches, on one device or
// another; from RMA_TEST_SIZE=16 on every device has all of them under all combinations.
package oracle

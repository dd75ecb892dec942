// Package verbstest is the contract of package verbs as tests; it is for those who write a device. Every device runs
// the suite:
//
//	func TestConformance(t *testing.T) {
//		fabric := card.NewFabric()
//		verbstest.Run(t, verbstest.Config{
//			Open: func(t testing.TB) verbs.Device { return fabric.Open() },
//		})
//	}
//
// # Two sides
//
// A case has a near side, which is a device of this process, and a far side, which is driven by steps: allocate,
// accept, post, collect. Each case is written once, in steps. Without [Config.Peer] the far side is another device of
// this process and its steps are calls. With it the far side is a device of a child process that runs [ServePeer]. Its
// steps go through the child's standard input and output. [Self] makes the child from the test program:
//
//	func TestMain(m *testing.M) {
//		verbstest.Main(m, func() (verbs.Device, error) { return card.Open() })
//	}
//
// # Rules of the suite
//
// A case waits only as documented at [verbs.CompletionChannel], so every case also tests wake-ups: an event that does
// not wake the sleeper fails the case, even if it arrived. Nothing is timed. [Config.Limit] only bounds how long a
// broken device can make a case wait.
//
// RMA_TEST_SIZE and RMA_TEST_SEED (package internal/testsize) set the number and the first seed of random programs.
// They also set how often a case repeats itself, and what a [Config.Variant] leaves out.
//
// Optional abilities ([verbs.Mapper], [verbs.Watcher], [verbs.Server], coherent atomics, inline data, memory of the
// program) are tested if the device has them. A case that needs a missing one says so when it skips.
//
// The suite tests only what the contract says. The contract leaves some choices: a malformed request may be refused
// when posted, or complete with an error. A case then accepts either and checks what both have in common.
package verbstest

// Package verbstest states the contract of package verbs as tests. Every device
// runs it:
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
// A case has a near side, a device of this process, and a far side, which is
// driven by steps: allocate, accept, post, collect. Each case is written once,
// against steps. Without [Config.Peer] the far side is another device of this
// process and its steps are calls. With it the far side is a device of a child
// process that runs [ServePeer] and its steps go through the child's standard
// input and output. [Self] makes it of the test program:
//
//	func TestMain(m *testing.M) {
//		verbstest.Main(m, func() (verbs.Device, error) { return card.Open() })
//	}
//
// # Rules of the suite
//
// A case waits only by the recipe of [verbs.CompletionChannel], so that every
// case is also a test of wake-ups: what comes without waking the sleeper fails
// the case even if it came. Nothing is timed; [Config.Limit] only bounds how
// long a broken device can keep a case waiting.
//
// RMA_TEST_SIZE and RMA_TEST_SEED (package internal/testsize) say how many random programs run and from
// which seed, how often a case repeats itself, and what a [Config.Variant] leaves out.
//
// Optional abilities ([verbs.Mapper], [verbs.Watcher], [verbs.Server], coherent
// atomics, inline data, memory of the program's own) are tested where the device has them, and
// a case that needs a missing one says so when it skips.
//
// The suite tests what the contract says and no more. Where the contract leaves
// a choice (a malformed request may be refused when posted, or complete with an
// error), a case takes either and checks what both have in common.
package verbstest

// Package progress polls what one rank has registered, and lets calls wait for what is found. While no call waits, a background
// goroutine polls. The package knows neither messages nor failures.
//
//	engine := progress.New(progress.Config{Home: device.Channel(), Now: device.Now, Limits: limits})
//	engine.Register(card)              // a Source
//	...
//	wait := engine.NewWaiter(guard)    // a value on the stack
//	defer wait.Finish()
//	for !arrived.Load() {
//		if err := wait.Pause(ctx); err != nil {
//			return err
//		}
//	}
//
// # Polling
//
// Any goroutine may call [Engine.Poll]. One goroutine polls at a time, with the mutex of the Engine. A second one returns at
// once. Sources are polled in the order of their registration, each with what those before it have found. A Source must not
// block. Code that must not run during a poll runs between [Engine.Lock] and [Engine.Unlock], or in [Engine.Exclude]. A
// goroutine that calls one of these holds no lock that a Source takes. A Source calls none of them, nor Register, Drain or
// Close.
//
// # How a call waits
//
// The caller of a [Waiter] checks its condition before each Pause. The Waiter polls, yields and sleeps, in this order:
//
//  1. It spins: SpinIterations iterations without a poll, then SpinRounds rounds of a poll and RelaxedIterations iterations.
//     An iteration is a Pause that returns at once.
//  2. It calls Yield, each time with a poll before it.
//  3. It announces a sleep on the channel Home, returns for one more check, polls once more, and sleeps.
//
// After a poll that found something the wait spins anew. Before the announcement the wait looks at its context and asks its
// [Guard], which alone knows which ranks have failed, or what to report.
//
// When more ranks than cores share the machine, only the [Limits] change. SpinRounds is 0: a wait gives its core away after one
// poll. Oversubscribed is set: any poll of a wait is enough for the background goroutine to stand back.
//
// # Wake-ups
//
// A change that a wait may wait for is followed by a wake of Home:
//
//   - A Source counts what it has changed, and the Engine wakes Home after a poll that has found something. A Source that does
//     not count a change calls [Engine.Wake] after it. So does a function given to [Engine.Retry], and every goroutine that
//     changes something outside of a poll.
//   - Another process that stores in memory which this rank maps wakes this rank's device afterwards.
//   - An event of the network card wakes Home if Home is the card's channel. Otherwise it wakes the background goroutine,
//     unless the background goroutine naps.
//
// # No wake-up is lost
//
// A wait W sleeps until its condition C holds. Its last steps are these. Operations on atomic variables are sequentially
// consistent: there is one order of all of them.
//
//  1. W finds C false. W has no rounds and yields left, and its context and Guard let it go on.
//  2. W calls Home.Prepare, which increments the number of sleepers, and then loads the number of wakes: the ticket. A card
//     that announces only the next event after it was armed is armed now.
//  3. W calls BeforeSleep of the SleepPreparers. Peers stop writing where only a poll would see it.
//  4. Pause returns, and W loads C once more.
//  5. W polls once more: the last poll. If TryLock fails, W stores true in pollWanted, loads it, and calls TryLock once more
//     if it is still true.
//  6. W calls Home.Sleep, which returns at once if the number of wakes is not the ticket.
//
// A goroutine or process G that makes C true stores C, and then loads the number of sleepers to decide whether to wake them.
// If W's increment (step 2) comes before G's load, G changes the number of wakes. If that comes after W has loaded the ticket,
// step 6 returns. If it comes before, so does G's store of C, and W's load of C in step 4 finds C true. If W's increment comes
// after G's load, it comes after G's store of C, too, and step 4 finds C true.
//
// An event of the card that comes after step 2 wakes Home. The last poll finds an event that came before step 2. If another
// goroutine H holds the mutex then, W cannot know whether H has passed that Source already. So every Unlock, after it has
// given the mutex back, polls while pollWanted is true and the mutex can be locked. A poll clears pollWanted before it polls
// the first Source. So one whole poll begins after step 2:
//
//   - W loads false: a poll has cleared the flag since W's store. That poll began after step 2.
//   - W's second TryLock fails while H holds the mutex, or while a goroutine that waits for the mutex is about to get it. Call
//     that one H, too. H unlocks later, and then loads pollWanted.
//   - H loads true and locks: H polls, after step 2.
//   - H loads true and cannot lock: the next holder has locked since. It has yet to unlock, and the same holds for it.
//   - H loads false: as if W had loaded it.
//
// W loads what W has just stored because TryLock begins with a plain load of the mutex. A TryLock that fails orders nothing in
// Go's memory model. Arm64 may move that load before the store: W would see H hold the mutex, and H would then see no flag.
// Arm64 moves no plain load before an earlier atomic load, and no atomic load before an earlier atomic store.
//
// What that poll finds is followed by a wake of Home, which ends step 6. The flag is not taken by a swap before the lock. H
// would take the flag of a second sleeper, and fail to lock. The holder might have passed the Source before that sleeper armed
// the card. Only last polls set the flag, so a holder polls at most once more for each sleep.
//
// H may lose its processor between Unlock and its load, and a Source may panic in the poll that has cleared the flag. Both
// leave W without that poll for some time. So W sleeps for longestReliance at most if its second TryLock has failed, or its load
// was false, and then polls again.
//
// If Home is not the channel of the network card, W leaves the network to the background goroutine B. After its last poll W
// takes itself out of the number of waits that poll, and sends to the channel endNap, which holds one element. B naps only in
// a receive from endNap, or until a timer of a few milliseconds ends. So B is in its loop after W's step 2. There it
// prepares a sleep on the channel of the network, polls, and sleeps. What it finds is followed by a wake of Home. Two things
// delay that poll:
//
//   - B cannot lock. It takes its announcement back and naps for a millisecond. B sets no flag, because it never sleeps
//     without a poll of its own after the announcement. An event that the holder of the mutex has missed waits for that long.
//   - That nap ends, and another wait polls enough. B naps on. W relies on the polls of that wait, and on the timer.
//
// The end of a wait follows the same rule. The goroutine that ends a wait changes what Guard.Ended returns, and then wakes
// Home. [Engine.Interrupt] stores its error, and then wakes Home. The wait looks at both after step 2. The end of a context wakes
// Home from the second sleep on, and the wait looks at its context after step 2, too. The first sleep is short.
//
// A model in the tests explores all interleavings of steps 1 to 6 without step 3, on sequentially consistent memory. It also
// shows that these are needed: step 4 and the ticket before it, the last poll with its flag and second TryLock, and the polls
// of Unlock until the flag is false. The load in step 5 is not, because only a weaker memory needs it.
package progress

import _ "github.com/onesided/rma/internal/platform"

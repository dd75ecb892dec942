// Package progress makes the progress of one rank: it polls what the rank has registered, lets calls wait, and polls in a
// background goroutine while no call waits. It knows neither messages nor failures.
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
// # Who may poll
//
// Any goroutine may call [Engine.Poll]. One polls at a time, with the mutex of the Engine; another one returns at once. Sources
// are polled in the order of their registration, each with what those before it have found. A Source must not block. Whatever
// must not happen during a poll is done between [Engine.Lock] and [Engine.Unlock], or in [Engine.Exclude]. A goroutine that
// calls one of these holds no lock that a Source takes.
//
// # How a call waits
//
// A [Waiter] looks, polls, yields and sleeps, in this order:
//
//  1. It spins: SpinIterations looks without a poll, then SpinRounds rounds of a poll and RelaxedIterations looks.
//  2. It calls Yield, each time with a poll before it.
//  3. It announces a sleep on the channel Home, looks once more, polls once more, and sleeps.
//
// Whatever is found begins the spinning anew. Before the announcement the wait checks its context and asks its [Guard], which
// alone knows which ranks have failed, or what to report.
//
// When more ranks than cores share the machine, only the [Limits] change: SpinRounds is 0, so that a wait gives its core
// away after one poll; and any poll of a wait counts as enough for the background goroutine.
//
// # Who wakes whom
//
// A change that a wait may wait for is followed by a wake of Home:
//
//   - A Source counts what it has changed, and the Engine wakes Home after a poll that has found something. A Source that does
//     not count a change calls [Engine.Wake] after it. So does a function given to [Engine.Retry], and every goroutine that
//     changes something outside of a poll.
//   - Another process that stores in memory which this rank maps wakes this rank's device afterwards.
//   - What comes over the network wakes Home if Home is the channel of the network card, and else the background goroutine.
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
//  5. W polls once more: the last poll.
//  6. W calls Home.Sleep, which returns at once if the number of wakes is not the ticket.
//
// A goroutine or process G that makes C true stores C, and then loads the number of sleepers to decide whether to wake them.
// If W's increment (step 2) comes before G's load, G changes the number of wakes, and step 6 returns. Otherwise G's load, and
// so its store of C, comes before W's load of C in step 4, which finds C true.
//
// An event of the card that comes after step 2 wakes Home. One that came before is for the last poll. If another goroutine H
// holds the mutex then, W cannot know whether H has passed that Source already. So W stores again and tries to lock once
// more. Every Unlock, after it has given the mutex back, polls while pollWanted is set and the mutex can be locked. A poll clears
// pollWanted before it polls the first Source. So one whole poll begins after step 2:
//
//   - W's second attempt fails while H holds the mutex, or while a goroutine that waits for the mutex is about to get it. Call
//     that one H, too. H unlocks later, and then loads pollWanted.
//   - H finds it set and locks: H polls, after step 2.
//   - H finds it set and cannot lock: the next holder has locked since. It has yet to unlock, and the same holds for it.
//   - H finds it not set: a poll has cleared it since W's store. That poll began after step 2.
//
// What that poll finds is followed by a wake of Home, which ends step 6. The flag is not taken by a swap before the lock: H
// would take the flag of a second sleeper, fail to lock, and the holder might have passed the Source before that sleeper armed
// the card. Only last polls set the flag, so a holder polls at most once more for each sleeper.
//
// If Home is not the channel of the network card, W leaves the network to the background goroutine B. After its last poll W
// takes itself out of the number of waits that poll, and sends to the channel endNap, which holds one element. B naps only in a
// receive from endNap, or until a timer of a few milliseconds ends. So B is in its loop after W's step 2. It prepares a sleep on
// the channel of the network, polls, and sleeps; what it finds is followed by a wake of Home.
//
// The end of a wait follows the same rule. Whoever ends it changes what Guard.Ended returns, and then wakes Home; the wait
// asks after step 2. The end of a context wakes Home from the second sleep on, and the first is short.
//
// The tests explore all interleavings of these steps in a model, and check that every one of them is needed.
package progress

import _ "github.com/onesided/rma/internal/platform"

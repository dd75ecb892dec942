// Package registration gets the memory of one rank to the devices that must know it: it registers buffers, keeps registrations,
// and chooses for each operation how its buffer gets to the card. It posts nothing, waits for nothing, and knows no peer.
//
//	registry := registration.New(devices, config)
//	card := registry.Card(registration.Network)
//	...
//	if key := card.Key(buffer); key != 0 {
//		return post(buffer, key)
//	}
//	card.Use(buffer)                      // or earlier
//	plan := card.Plan(buffer, true)
//	if hold, ok := plan.Whole(); ok {
//		return post(buffer, hold.Key())   // and hold.Release() after its completion
//	}
//	for plan.More() {
//		// If plan.Depth() > 0, that many pieces at most are in use.
//		piece := plan.Next()
//		if piece.Copied {
//			...                           // through a buffer of card.CopyBuffer
//		} else {
//			post(piece.Memory, piece.Hold.Key())
//		}
//	}
//
// # What a card knows
//
// A device without a reserved key accesses only memory that is registered ([Card.NeedsKeys]). There are five kinds of it:
//
//   - Regions of the program and of windows ([Registry.Register]). A look-up by address finds them ([Card.Key]), until they are
//     deregistered.
//   - Regions of the library itself ([Registry.Devices]): a rank's block, pipes, landings. No look-up finds them.
//   - Buffers of a [Pool], registered once: eager buffers, and stages to copy through.
//   - Kept regions, registered because a buffer is used often (package regcache decides that), and kept after their use.
//   - Regions for one piece of one operation, deregistered after it.
//
// A [Plan] chooses among the last three by cost (package scheduler/transfer).
//
// # States of a kept region
//
//	state              event                                             next
//	registering        the device accepts                                kept, in use
//	kept, in use       Release of the last Hold                          kept, not in use
//	kept, in use       replaced, or cleared                              not kept, in use
//	kept, not in use   a Plan finds it                                   kept, in use
//	kept, not in use   evicted, replaced, cleared, or dead               ended
//	not kept, in use   Release of the last Hold                          ended
//	ended              Tidy, or the next registration                    deregistered
//
// The least recently used regions are evicted when more is kept than the limits allow, but none that is in use. All are cleared
// when the device is out of memory, and by Close. A new region replaces another if it has the rest of its addresses. If it has only
// some of them, the other stays kept with what is left.
//
// A region is dead when the object that it was registered over is gone. A look-up that meets a dead region retires it. So does Tidy,
// after the runtime's clean-up has queued the region. No region in use is dead, because a Hold has the memory.
//
// # Invariants
//
// A key is valid while a request has it. The caller releases a [Hold] or a [Buffer] only after every request that names it has
// completed. A kept region ends only when it is neither kept nor in use, and only ended regions are deregistered.
//
// A kept region is used only for the memory that it was registered over. Go's collector frees memory, and may return its pages to the
// system, which a device does not notice. The region does not keep its memory alive ([verbs.Weak]): it would never be freed. It
// knows the Go object weakly. Package object argues that the pages are those that were registered while the weak pointer returns
// the object. A look-up loads that pointer after it has found the region, under the cache's mutex, and returns the region only if the
// object is there. The caller has the buffer, so the object stays there until the Hold has it, and then until Release. Memory
// outside of Go's heap has no object and is not kept. The program may register it.
//
// No remote right depends on a weak pointer. Kept regions have local rights only, and so have regions for one operation. A peer's
// access is not announced here: nothing could look at the object before it, nor hold the memory until it is over. Remote rights
// are granted by Register and RegisterMapped alone, whose regions keep their memory alive. Package verbs refuses a weak region with
// remote rights.
//
// A region is registered for more than its buffer where kept regions overlap, so that these do not replace each other. All that
// is registered then is of one Go object: regions whose objects are gone are removed before, and live objects do not overlap.
//
// # Mutexes
//
// All mutexes are leaves: no code here takes a second one, or a caller's.
//
//   - The mutex of a card's cache guards the policy, what is kept, and identities. It is never held while the device registers
//     or deregisters. A look at an object, under this mutex, may park its goroutine until a collection has ended its marking. So
//     [Card.Use], [Card.Plan], and [Plan.Next] are not called under a lock that another goroutine spins for.
//   - [Hold.Release] looks at no object, but waits for that mutex. [Card.Tidy] looks at the objects of regions that it deregisters,
//     without the mutex, to stop their clean-ups. So both may take as long, which is rare. They may be called under the lock of a
//     connection and in progress all the same.
//   - Another mutex guards the list of regions whose objects are gone. The runtime's clean-up goroutine takes this mutex and no other
//     one: other clean-ups wait for that goroutine.
//   - The mutex of a Pool is held while it registers a slab. Every device allows that: registering takes no lock of a caller.
//   - The list of the program's regions is replaced with a mutex, and loaded without it.
//
// Nothing is allocated for an operation whose buffer is known, kept, or copied, once the pools have grown, and where time is real:
// Plan, Piece, Hold and Buffer are values.
//
// # Virtual time
//
// In virtual time a run depends only on the program. So buffers have addresses that depend on the order of their uses and not on
// the allocator. Memory outside of Go's heap keeps its own address. The end of an object is ignored: its region stays until it is
// evicted.
package registration

import _ "github.com/onesided/rma/internal/platform"

// Package world is the job: who its ranks are, how they found each other, progress,
// failure, and collectives.
//
//	err := world.Run(ctx, 4, func(ctx context.Context, w *world.World) error {
//		sum := make([]int, 1)
//		err := world.AllReduce(ctx, w, []int{w.Rank()}, sum, func(a, b int) int { return a + b })
//		...
//	})
//
// [Run] makes the ranks goroutines of this process. [Init] joins the processes that
// a launcher started; without a launcher it is a world of one.
//
// # Progress
//
// All protocol work is in [World.Poll]. A caller that waits drives it: it looks a
// bounded number of times, yields, then sleeps on the device's channel. With more
// ranks on the machine than cores it sleeps at once.
//
// # Failure
//
// A rank fails when its process ends, or its body returns an error or panics,
// before it has closed its World. From then on every call that needs it, also one
// that is blocked, returns a [*PeerError] that names it. A rank that closes its
// World while others still call collectives fails those calls with [ErrLeft].
package world

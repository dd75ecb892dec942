// Package job is the body of package world, of which programs see a façade. It also has what package window needs of a rank: connections
// to other ranks, progress and waiting, barriers, failures, and the memory of other ranks.
//
// # Invariants
//
//  1. A World of this package has at most one world.World, which is made when it is first needed. Every call that gives a program the World
//     of a job, a team or a session gives that one.
//  2. This package imports neither world nor window. Window finds the World behind a world.World by Of.
//  3. Error texts begin with "world: ", the name by which programs know the calls. Stack frames of this package count as calls of package
//     world where a waiting call is named: see stall.go.
//
// # Progress
//
// All protocol work is in [World.Poll]. A caller that waits drives it: it polls a bounded number of times, yields, then sleeps on the
// device's event channel. With more ranks than the cores that they are bound to it yields at once. Where ranks are reached over a network a
// goroutine, the driver, makes progress while no call waits. While a call polls the driver stands back: two sleepers on one network
// would wake each other's threads. It also stands back, by a few milliseconds at most, from a program that computes and calls by
// turns, as long as no other rank waits for it in between. Where GOMAXPROCS is 1 it always does.
//
// A card that writes into the memory of other ranks by itself delivers short messages so, which a polling call sees at once. A rank that
// sleeps, or computes, is woken by the sender.
//
// # Collectives
//
// Messages of collectives go through pipes in memory between ranks that map each other's, the shortest as cells of one line there, and
// between other ranks over links. All ranks choose the algorithm that the costs of their cards make the cheapest.
package job

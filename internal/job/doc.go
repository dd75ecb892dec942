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
// Package progress makes progress for a rank, and has the rules of waiting. This package registers the sources (progress.go): notices of
// failure, cards, connections that are being made, links that have ended. It gives each wait the guard (wait.go) that ends waits before memory
// is freed, and that shows and reports calls which wait long. Code that changes what a wait waits for, outside a poll that finds something,
// calls Engine.Wake.
//
// A card that writes into the memory of other ranks by itself delivers short messages so, which a polling call sees at once. A rank that
// sleeps, or computes, is woken by the sender.
//
// # Collectives
//
// Messages of collectives go through pipes in memory between ranks that map each other's, the shortest as cells of one line there, and
// between other ranks over links. All ranks choose the algorithm that the costs of their cards make the cheapest.
package job

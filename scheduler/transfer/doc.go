// Package transfer has the protocols by which the bytes of one put or get cross between memory of
// the program, of which a card may not know, and the wire: what each takes by a [Model] of the
// card, which is the best for a buffer that is used once ([Chooser]), and into which [Pieces] it
// cuts an operation.
//
//	model := transfer.NewModel(&costs, stage)
//	best := model.Chooser(transfer.All, true) // of puts
//	...
//	pieces := model.Cut(best.Best(len(buffer)), true, len(buffer))
//	for piece, ok := pieces.Next(address); ok; piece, ok = pieces.Next(address) {
//		// copy or register piece.Bytes bytes, and post them
//		address += uint64(piece.Bytes)
//	}
//
// The protocols are those of two papers: that of the superpipeline (paper C), which always copies,
// and "High performance RDMA protocols in HPC" (paper E), which registers in pieces. Both have a sender
// and a receiver. The target of a put or a get is registered with its window, so that the origin's half
// is left:
//
//   - A put copies its first piece before anything is sent, and each next one while the one
//     before is on the wire. Only the first copy is seen, so pieces grow from a short one by what
//     copying is faster than the wire.
//   - A get is the mirror image. Only the copy of the last piece is seen, so pieces shrink to a
//     short one.
//   - There is no rendezvous behind which a copy could hide. So the first piece is not as long as
//     paper C has it (section 4, C0 = Bcopy 2 lambda) but so that its copy and the gaps together
//     take the least time: see [Model.First].
//   - Registered pieces are so long that their registrations, and those that end, hide behind the
//     wire. Where such a length exists within 16 MB, two of them are outstanding; else three, so
//     that the processor does not wait for the card: see [Model.Depth].
//
// There is taken to be stage enough for the processor never to wait for a copied piece to leave, and
// copies to be as fast as Costs say whatever their length. Short operations of Pipeline and
// CachingPipeline, which end before a whole piece is left behind the head, are copied.
//
// Equations of paper C for both halves are those of [TwoSided].
// What the target combines with what it has goes in messages, by both halves: [Model.Blocks].
//
// # Invariants
//
//   - Pieces add up to the operation, and none is empty.
//   - No copied piece is longer than the stage. Registered ones need no stage; but for those of
//     Register and Cache none is longer than 16 MB.
//   - The Chooser's is the least of the times, but for 0.3 % at the lengths that are tested.
//   - Pieces of Pipeline end with a page, those of CachingPipeline with a multiple of
//     [Model.Piece], but for the last and the copied ones.
//   - The package is pure: it has no clock and no goroutine, and nothing is allocated by
//     Best, Cut, Next and Time. A Model and a Chooser do not change and may be shared.
package transfer

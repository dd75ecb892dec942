// Package transfer models how bytes get between a program's memory and a card that must have registered
// it; it is for layers that choose among the protocols of papers B, C and E. A [Model] of the card predicts the time of each protocol. A [Chooser]
// finds the best protocol for a buffer that is used once. [Pieces] cut an operation.
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
// The protocols are those of two papers, C and E of docs/papers.md. Denis, "A High Performance Superpipeline Protocol
// for InfiniBand" (Euro-Par 2011) always copies. Woodall, Shipman, Bosilca and Maccabe, "High Performance RDMA Protocols
// in HPC" (EuroPVM/MPI 2006) registers in pieces. Both have a sender and a receiver. The target memory of a put or a get
// is registered with its window, so only the origin's half remains:
//
//   - A put copies its first piece before anything is sent, and each further piece while the previous one is on the
//     wire. Only the first copy costs time. So pieces grow from a short one, by the ratio of the rates of copying and
//     the wire.
//   - A get is the mirror image. Only the copy of the last piece costs time, so pieces shrink to a short one.
//   - There is no rendezvous that could hide a copy. So the first piece is shorter than in paper C (section 4, C0 =
//     Bcopy 2 lambda). It has the length for which its copy and the gaps take the least time; see [Model.First].
//   - Registered pieces are so long that the wire hides their registrations and deregistrations. Where such a length
//     exists within 16 MiB, two of them are outstanding, otherwise three; see [Model.Depth].
//
// The model assumes that the stage, which is the registered memory for copies, is large enough: the processor never
// waits for a copied piece to leave. It assumes that copies are as fast as Costs say, whatever their length. Pipeline
// and CachingPipeline copy an operation that ends before a whole piece follows the head.
//
// [TwoSided] has the equations of paper C for both halves. [Model.Blocks] is for data that the target combines with its
// own memory, which goes in messages and involves both halves.
//
// # Invariants
//
//   - Pieces add up to the operation, and none is empty.
//   - No copied piece is longer than the stage. Registered pieces need no stage. Except for those of Register and
//     Cache, none is longer than 16 MiB.
//   - The Chooser's protocol takes the least time, within 0.3 % at the lengths that are tested.
//   - Pieces of Pipeline end at a page boundary, those of CachingPipeline at a multiple of [Model.Piece], except for
//     the last piece and the copied pieces.
//   - The package is pure: it has no clock and no goroutine. Best, Cut, Next and Time allocate nothing. A Model and a
//     Chooser do not change and may be shared.
package transfer

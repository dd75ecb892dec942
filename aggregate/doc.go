// Package aggregate packs operations on one rank's window into packets, and takes packets
// apart: many small operations travel in one message, with the synchronization that
// completes them. It is pure: it moves bytes between slices and knows no wire.
//
// # Format
//
// A packet is a sequence of runs. A run is a header of 8 bytes and operations of one
// [Shape]: for each the offset in the window of what it touches, 8 bytes, and its operand,
// followed by zeroes up to a multiple of 8 bytes. All numbers are little-endian. The
// header is the Kind, the reduce.Op, the reduce.Kind of the elements, a zero, the bytes
// that each operation touches, of 16 bits, and how many operations there are, of 16 bits.
// Fields that a Kind has no use for are zero.
//
// The answer to a packet is what its operations read, in their order, each followed by
// zeroes up to a multiple of 8 bytes.
//
// # Invariants
//
//   - Operands in a packet that begins on an 8-byte boundary do so, too.
//   - A Reader gives nothing of a packet that Check has not found whole: every run lies
//     within the packet, and is of a shape that exists.
//   - Nothing is allocated.
package aggregate

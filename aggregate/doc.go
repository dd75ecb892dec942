// Package aggregate packs operations and their synchronization into one message and takes messages apart; it is for
// layers that send messages of their own. A packet holds operations on the window of one rank. The package is pure: it
// moves bytes between slices and knows no wire.
//
// # Format
//
// A packet is a sequence of runs. A run is a header of 8 bytes and operations of one [Shape]. An operation is the
// offset in the window, 8 bytes, and the operand, followed by zeroes up to a multiple of 8 bytes. All numbers are
// little-endian. The header is
//
//	Kind           1 byte
//	reduce.Op      1 byte
//	reduce.Kind    1 byte, of the elements
//	zero           1 byte
//	size           2 bytes, the bytes that each operation touches
//	count          2 bytes, the number of operations
//
// Fields that a Kind does not use are zero.
//
// The response to a packet is what its operations read, in their order. Each result is followed by zeroes up to a
// multiple of 8 bytes.
//
// # Invariants
//
//   - Operands in a packet that begins on an 8-byte boundary are on one too.
//   - A Reader requires a packet that Check has accepted: every run lies within the packet, and its shape is valid.
//   - Nothing is allocated.
package aggregate

// Package shm is the verbs.Device over shared memory; package world opens it by itself. A program imports it to open a
// device with other options, for world.WithNetwork. It has two forms:
//
//   - [Fabric]: the ranks are goroutines of one process. It works on every system.
//   - [Open]: the ranks are processes of one user on one Linux machine.
//
// In both, a peer's registered memory is mapped. Remote writes, reads and atomics are loads and stores of the CPU that
// posts them. [verbs.Mapper] gives access to the mapping without a queue pair. Messages go through a ring of 32 KiB per
// direction and connection. A connection takes the rings, 192 bytes of flags beside each, and the queues. A completion
// queue takes memory for the completions that it has held at once.
//
//	fabric := shm.NewFabric()
//	device, err := fabric.Open()
//
// Freed memory is reused only when an address range has been used up once: a segment, or what a fabric has reserved,
// which is at most four times the largest total of its allocations. When the peer of a connection is gone, what it sent
// is delivered to the posted receives, and the rest of both queues is flushed.
//
// # Processes
//
// A process has one segment: a memfd that is as large as the machine's memory but occupies only what is allocated from
// it. A peer gets its descriptor over a unix socket in the abstract name space, and maps it once. Before that, both
// have checked that the other belongs to the same user and has the key of the job. So nothing is in a file system, and
// nothing is left behind, whatever dies.
//
// The first pages of the segment hold the words of the process's event channel and the table of its memory regions.
// Requesters check each remote access against this table themselves. This check and the key protect against mistakes,
// such as two jobs of a user that meet. They do not protect against a malicious process of the same user: one that may
// trace others opens their descriptors in /proc. Values that a peer can write to the segment are still checked before
// they are used.
//
// Memory of 2 MiB and more is put on pages of that size, which spares a processor most walks of the page table. For
// shared memory Linux does so only on request, from version 6.1 on.
//
// Memory that a program registers from elsewhere is read and written by process_vm_readv and process_vm_writev, if the
// system permits. Atomics need memory of AllocateMemory.
package shm

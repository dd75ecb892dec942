// Package shm is the device for ranks that share memory, in two forms:
//
//   - [Fabric]: the ranks are goroutines of one process. It works everywhere.
//   - [Open]: the ranks are processes of one user on one Linux machine.
//
// In both, a peer's registered memory is mapped, so that remote writes, reads and
// atomics are loads and stores of the CPU that posts them, and [verbs.Mapper]
// hands the mapping to whoever wants to do them without a queue pair. Messages go
// through a ring of 32 KiB a direction and connection; that, 192 bytes of flags
// beside it and the queues is all the memory that a connection takes. A completion queue
// takes memory for what it has held at once.
//
//	fabric := shm.NewFabric()
//	device, err := fabric.Open()
//
// Freed memory is used again only when an address range has been used up once: a
// segment, or what a fabric has reserved, which is up to four times the most that was allocated at once. When the peer of a connection has gone, what it sent is
// delivered to the receives that are posted, and the rest of both queues is flushed.
//
// # Processes
//
// A process has one segment, a memfd that is as large as the machine's memory but
// occupies only what is allocated from it. A peer gets its descriptor over a unix
// socket in the abstract name space, after both have checked that the other
// belongs to the same user and has the key of the job, and maps it once. So nothing is in any file system and
// nothing is left behind, whatever dies. The first pages of the segment hold the
// bell on which the process sleeps and the table of its memory regions, against
// which requesters check each remote access themselves. That and the key guard against mistakes, such as two jobs of a
// user that meet, and not against a process of this user that means harm: one that may trace others opens their
// descriptors in /proc. What a peer writes to the segment is checked all the same before it is used.
//
// Memory of 2 MiB and more is put on pages of that size, which spares a processor that
// goes all over it most walks of the page table. Systems do not do so with shared memory
// of themselves, but Linux does it on request from 6.1 on.
//
// Memory that a program registers from elsewhere is read and written by
// process_vm_readv and process_vm_writev, where the system permits; atomics need
// memory of AllocateMemory.
package shm

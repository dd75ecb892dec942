package shm

import "golang.org/x/sys/unix"

// enlarge puts what a range of the segment has of whole huge pages on such pages, as far as the
// system does that: Linux 6.1 and later on request, whatever it does of itself. It looks for a
// page to begin with in each, and what is already there stays.
func (p *process) enlarge(offset, length int) {
	begin, end := (offset+hugePageBytes-1)&^(hugePageBytes-1), (offset+length)&^(hugePageBytes-1)
	if begin >= end {
		return
	}
	for at := begin; at < end; at += hugePageBytes {
		if unix.Fallocate(p.fd, 0, int64(at), pageBytes) != nil {
			return
		}
	}
	_ = unix.Madvise(p.memory[begin:end], unix.MADV_COLLAPSE)
}

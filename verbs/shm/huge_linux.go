package shm

import "golang.org/x/sys/unix"

// enlarge puts what a range of the segment has of whole huge pages on such pages, as far as the
// system does that: Linux 6.1 and later on request, whatever it does of itself. The system wants
// a page to begin with in each, and what is already there stays.
func (p *process) enlarge(offset, length int) {
	begin, end := (offset+hugePageBytes-1)&^(hugePageBytes-1), (offset+length)&^(hugePageBytes-1)
	if begin >= end {
		return
	}
	for at := begin; at < end; at += hugePageBytes {
		if fallocate(p.fd, 0, at, pageBytes) != nil {
			return
		}
	}
	_ = unix.Madvise(p.memory[begin:end], unix.MADV_COLLAPSE)
}

// advise tells the system in what pages a mapping of a segment is to be where it has the choice.
func (p *process) advise(memory []byte) {
	advice := unix.MADV_HUGEPAGE
	if p.smallPages {
		advice = unix.MADV_NOHUGEPAGE
	}
	_ = unix.Madvise(memory, advice)
}

package shm

import "golang.org/x/sys/unix"

// enlarge puts the whole huge pages within a range of the segment on such pages, if the system can: Linux 6.1 and
// later, on request. The system requires that each already has one page, and the contents stay.
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

// advise tells the system which pages to prefer for a mapping of a segment.
func (p *process) advise(memory []byte) {
	advice := unix.MADV_HUGEPAGE
	if p.smallPages {
		advice = unix.MADV_NOHUGEPAGE
	}
	_ = unix.Madvise(memory, advice)
}

//go:build linux

package job

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/onesided/rma/internal/bounds"
)

// frames are the page frames behind memory, which are pinned: the system neither moves them nor gives
// them to others, but the process may have let go of them.
type frames struct {
	first   uint64
	numbers []uint64
	// pipe holds the pages.
	pipe *os.File
}

const page = 4096

// pin pins the frames of memory. It gives nil where they can't be seen, which takes privileges, or
// can't be pinned.
func pin(memory []byte) *frames {
	if os.Getpagesize() != page {
		return nil
	}
	f := &frames{first: bounds.Address(memory) / page}
	pages := numberOfPages(memory)
	// What was not used yet has no frames of its own, and who pins for writing has them made.
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(f.first*page), uintptr(pages*page), unix.MADV_POPULATE_WRITE); errno != 0 {
		return nil
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil
	}
	defer in.Close()
	f.pipe = out
	part := unix.Iovec{Base: &memory[0]}
	part.SetLen(len(memory))
	_, err = unix.FcntlInt(in.Fd(), unix.F_SETPIPE_SZ, max(pages, 16)*page)
	if err == nil {
		var n int
		if n, err = unix.Vmsplice(int(in.Fd()), []unix.Iovec{part}, unix.SPLICE_F_NONBLOCK); n != len(memory) {
			err = errors.Join(err, unix.EAGAIN)
		}
	}
	if err == nil {
		f.numbers, err = frameNumbers(memory)
	}
	if err != nil {
		f.unpin()
		return nil
	}
	return f
}

// unpin gives them back.
func (f *frames) unpin() {
	if f != nil {
		_ = f.pipe.Close()
	}
}

// behind tells whether part of the memory has still the frames that it had.
func (f *frames) behind(part []byte) bool {
	now, err := frameNumbers(part)
	return err != nil || slices.Equal(now, f.numbers[bounds.Address(part)/page-f.first:][:len(now)])
}

func numberOfPages(memory []byte) int {
	from := bounds.Address(memory)
	return int((from+uint64(len(memory))-1)/page-from/page) + 1
}

// pagemap is nil where it can't be read.
var pagemap = sync.OnceValue(func() *os.File {
	f, _ := os.Open("/proc/self/pagemap")
	return f
})

var errNoFrames = errors.New("page frames are not to be seen")

// frameNumbers are those of the pages of memory.
func frameNumbers(memory []byte) ([]uint64, error) {
	entries := make([]byte, 8*numberOfPages(memory))
	if _, err := pagemap().ReadAt(entries, int64(bounds.Address(memory)/page*8)); err != nil {
		return nil, err
	}
	numbers := make([]uint64, len(entries)/8)
	for i := range numbers {
		// A page that is there has its frame in the lower 55 bits, 0 for who may not know.
		const there, frame = 1 << 63, 1<<55 - 1
		entry := binary.NativeEndian.Uint64(entries[8*i:])
		if entry&there != 0 && entry&frame == 0 {
			return nil, errNoFrames
		}
		numbers[i] = entry & (there | frame)
	}
	return numbers, nil
}

// mapped is memory that Go does not know.
func mapped(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func unmap(memory []byte) error { return unix.Munmap(memory) }

package shm

import (
	"context"
	"errors"
	"fmt"
)

// While a system call changes the pages of a mapping, other threads of the process that change any mapping wait for it.
// Threads that touch new memory wait after them. The rank then makes no progress, and its peers presume it dead. The
// same holds for a loop of the runtime in which no goroutine can be stopped for the collector. So long operations on
// memory are done in pieces.
const (
	// backedPiece is for calls that find new pages. On a virtual machine whose host backs memory only when it is
	// touched, 2 MiB take mostly 1 ms, and at most 20 ms.
	backedPiece = hugePageBytes
	// freedPiece is for calls that free pages or clear them, 64 MiB in 20 ms at most. These calls walk all of a
	// segment's address space, whether it has pages or not.
	freedPiece = 64 << 20
)

// inPieces calls f for each piece of memory. A piece has size bytes, the last one less. It checks the context between
// pieces, and returns the number of bytes done.
func inPieces(ctx context.Context, memory []byte, size int, f func(piece []byte) error) (done int, err error) {
	for done < len(memory) {
		if done > 0 && ctx.Err() != nil {
			return done, contextError(ctx)
		}
		piece := memory[done:min(done+size, len(memory))]
		if err := f(piece); err != nil {
			return done, err
		}
		done += len(piece)
	}
	return done, nil
}

// contextError returns the error of a context that is over, with its cause if that is another error.
func contextError(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// giveBack makes f free the pages of memory, which then reads as zeros. Pages that the system does not take back, such
// as locked pages, are cleared.
func giveBack(memory []byte, f func(piece []byte) error) {
	_, _ = inPieces(context.Background(), memory, freedPiece, func(piece []byte) error {
		if f(piece) != nil {
			clear(piece)
		}
		return nil
	})
}

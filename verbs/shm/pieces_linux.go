package shm

import (
	"context"
	"errors"
	"fmt"
)

// While a system call changes the pages of a mapping, other threads of the process that want to change
// any mapping wait for it, and those that touch new memory wait behind them: nothing of the rank moves, and
// its peers take it for dead. The same holds for a loop of the runtime's in which no goroutine can be stopped
// for the collector. So what takes long by the byte is done in pieces.
const (
	// backedPiece is for calls that find new pages. Where a machine itself gets its memory from a host only
	// when it is touched, 2 MiB take up to 20 ms, mostly 1 ms.
	backedPiece = hugePageBytes
	// freedPiece is for calls that give pages back or clear them, 64 MiB in 20 ms at most. Those go over all
	// of a segment's address space, whatever of it has pages.
	freedPiece = 64 << 20
)

// inPieces calls f for each piece of memory, of size bytes but for the last. It looks at the context between
// them, and returns how many bytes are done.
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

// contextError is the error of a context that is over, and its cause if that is another.
func contextError(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// giveBack has f give the pages of memory back, which reads as zeros then. What the system does not take back, such
// as locked pages, is cleared.
func giveBack(memory []byte, f func(piece []byte) error) {
	_, _ = inPieces(context.Background(), memory, freedPiece, func(piece []byte) error {
		if f(piece) != nil {
			clear(piece)
		}
		return nil
	})
}

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

// A jobWindow is the window of rank 0 that all ranks use while they count. It has the tasks and the progress of the
// job. In words:
//
//	0          the number of the next task to be taken
//	8, 9, 10   pieces and bytes of finished tasks, and words counted
//	16…        the offsets of the tasks in the text, in bytes, and its end
//	after      the text: the tasks
//
// The counters are on cache lines apart from the rest, which does not change.
type jobWindow struct {
	words *window.Window[uint64]
	bytes *window.Window[byte]
	tasks int
	// lookup receives the offsets of a task.
	lookup [2]uint64
}

const (
	nextTaskWord  = 0
	progressWord  = 8
	progressWords = 3
	indexWord     = 16
	wordBytes     = 8
)

// newJobWindow is collective. Rank 0 passes the tasks, the other ranks their number.
func newJobWindow(ctx context.Context, w *world.World, tasks [][]piece, number int) (*jobWindow, error) {
	var text []byte
	index := make([]uint64, 0, len(tasks)+1)
	for _, task := range tasks {
		index = append(index, uint64(len(text)))
		text = encodeTask(text, task)
	}
	index = append(index, uint64(len(text)))
	mine := 0
	if w.Rank() == 0 {
		mine = indexWord + len(index) + (len(text)+wordBytes-1)/wordBytes
	}
	b := &jobWindow{tasks: number}
	var err error
	if b.words, err = window.Allocate[uint64](ctx, w, mine, window.SingleElement(), window.Notifications(0)); err != nil {
		return nil, err
	}
	if b.bytes, err = window.View[byte](b.words); err != nil {
		return nil, errors.Join(err, b.words.Close())
	}
	if w.Rank() == 0 {
		copy(b.words.Local()[indexWord:], index)
		copy(b.bytes.Local()[b.textAt(0):], text)
	}
	if err := w.Barrier(ctx); err != nil {
		return nil, err
	}
	return b, b.words.LockAll(ctx, window.NoCheck)
}

// textAt returns the displacement, in bytes, of a position in the text.
func (b *jobWindow) textAt(place uint64) int { return (indexWord+b.tasks+1)*wordBytes + int(place) }

// take takes the next task. The result is empty if there is none.
func (b *jobWindow) take(ctx context.Context) ([]piece, error) {
	if err := b.words.FetchAndOp(window.Sum, 1, &b.lookup[0], 0, nextTaskWord); err != nil {
		return nil, err
	}
	if err := b.words.Flush(ctx, 0); err != nil {
		return nil, err
	}
	number := b.lookup[0]
	if number >= uint64(b.tasks) {
		return nil, nil
	}
	if err := b.words.Get(b.lookup[:], 0, indexWord+int(number)); err != nil {
		return nil, err
	}
	if err := b.words.Flush(ctx, 0); err != nil {
		return nil, err
	}
	text := make([]byte, b.lookup[1]-b.lookup[0])
	if err := b.bytes.Get(text, 0, b.textAt(b.lookup[0])); err != nil {
		return nil, err
	}
	if err := b.words.Flush(ctx, 0); err != nil {
		return nil, err
	}
	task, err := decodeTask(text)
	if err != nil {
		return nil, fmt.Errorf("task %d: %w", number, err)
	}
	return task, nil
}

// stop leaves no task for any rank.
func (b *jobWindow) stop(ctx context.Context) error {
	if err := b.words.Accumulate(window.Max, []uint64{uint64(b.tasks)}, 0, nextTaskWord); err != nil {
		return err
	}
	return b.words.Flush(ctx, 0)
}

// advance adds what this rank has counted since the last call to the progress of all.
func (b *jobWindow) advance(ctx context.Context, pieces, bytes, words uint64) error {
	for i, n := range [progressWords]uint64{pieces, bytes, words} {
		if err := b.words.Accumulate(window.Sum, []uint64{n}, 0, progressWord+i); err != nil {
			return err
		}
	}
	return b.words.Flush(ctx, 0)
}

// progress reads the progress of the job.
func (b *jobWindow) progress(ctx context.Context) (pieces, bytes, words uint64, err error) {
	var now [progressWords]uint64
	for i := range now {
		if err := b.words.FetchAndOp(window.NoOp, 0, &now[i], 0, progressWord+i); err != nil {
			return 0, 0, 0, err
		}
	}
	return now[0], now[1], now[2], b.words.Flush(ctx, 0)
}

// close is collective.
func (b *jobWindow) close(ctx context.Context) error {
	return errors.Join(b.words.UnlockAll(context.WithoutCancel(ctx)), b.words.Close())
}

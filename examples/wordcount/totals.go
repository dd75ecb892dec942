package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/world"
)

// totals are the results of a count, of one rank or of all.
type totals struct {
	// Files is the number of files that were counted. Bytes and Words are theirs.
	Files, Bytes, Words uint64
	// Distinct is the number of different words.
	Distinct uint64
	// Overlong is the number of words that were too long to be counted.
	Overlong uint64
	// Binary files were skipped. Unreadable files and directories were reported, and so were files that had become
	// Shorter.
	Binary, Unreadable, Shorter uint64
}

func (t totals) plus(other totals) totals {
	return totals{
		Files: t.Files + other.Files, Bytes: t.Bytes + other.Bytes, Words: t.Words + other.Words,
		Distinct: t.Distinct + other.Distinct, Overlong: t.Overlong + other.Overlong,
		Binary: t.Binary + other.Binary, Unreadable: t.Unreadable + other.Unreadable, Shorter: t.Shorter + other.Shorter,
	}
}

// errElsewhere ends a rank because another one has failed, which reports the reason.
var errElsewhere = errors.New("another rank has failed")

// agree returns an error on all ranks if any rank passes one. It is collective. The first rank that passes an error
// gets its own, the others get errElsewhere, which may be passed to agree again. A rank that does not answer is an
// error, too.
func agree(ctx context.Context, w *world.World, err error) error {
	mine := []int64{int64(w.Size())}
	if err != nil && !errors.Is(err, errElsewhere) {
		mine[0] = int64(w.Rank())
	}
	first := make([]int64, 1)
	if e := world.AllReduce(ctx, w, mine, first, func(a, b int64) int64 { return min(a, b) }); e != nil {
		if err != nil {
			return err
		}
		return e
	}
	switch first[0] {
	case int64(w.Size()):
		return nil
	case int64(w.Rank()):
		return err
	}
	return fmt.Errorf("%w: rank %d", errElsewhere, first[0])
}

// gather collects the ranks' bytes, of any lengths, on rank 0.
func gather(ctx context.Context, w *world.World, in []byte) ([][]byte, error) {
	lengths := make([]int64, w.Size())
	if err := world.AllGather(ctx, w, []int64{int64(len(in))}, lengths); err != nil {
		return nil, err
	}
	most := int64(0)
	for _, n := range lengths {
		most = max(most, n)
	}
	padded := make([]byte, most)
	copy(padded, in)
	var all []byte
	if w.Rank() == 0 {
		all = make([]byte, most*int64(w.Size()))
	}
	if err := world.Gather(ctx, w, 0, padded, all); err != nil || w.Rank() != 0 {
		return nil, err
	}
	parts := make([][]byte, w.Size())
	for rank, n := range lengths {
		parts[rank] = all[int64(rank)*most:][:n]
	}
	return parts, nil
}

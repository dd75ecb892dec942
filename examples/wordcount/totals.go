package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/onesided/rma/world"
)

// totals are what has been counted, by a rank or by all.
type totals struct {
	// Files were counted, with Bytes and Words.
	Files, Bytes, Words uint64
	// Distinct is how many different words there are.
	Distinct uint64
	// Overlong is how many words were too long to be counted.
	Overlong uint64
	// Binary files were skipped, Unreadable files and directories were named, and so
	// were files that had become Shorter.
	Binary, Unreadable, Shorter uint64
}

func (t totals) plus(other totals) totals {
	return totals{
		Files: t.Files + other.Files, Bytes: t.Bytes + other.Bytes, Words: t.Words + other.Words,
		Distinct: t.Distinct + other.Distinct, Overlong: t.Overlong + other.Overlong,
		Binary: t.Binary + other.Binary, Unreadable: t.Unreadable + other.Unreadable, Shorter: t.Shorter + other.Shorter,
	}
}

// errElsewhere ends a rank because another one has failed, which says why.
var errElsewhere = errors.New("another rank has failed")

// agree is called by all ranks, and returns an error in all if it was called with one in
// any: the own error in the first rank that has one, in the others an errElsewhere, which
// may be agreed upon again. A rank that cannot be asked is an error, too.
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

// gather collects the ranks' bytes, of any lengths, at rank 0.
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

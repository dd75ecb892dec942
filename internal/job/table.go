package job

import (
	"context"

	"github.com/onesided/rma/internal/tuning"
)

// Ranks that share cores and map each other's memory add up short vectors at one place, the table in the
// block of rank 0: each stores its elements there and comes to the barrier's counter, and the last to come
// adds them up before it releases the others. So each rank runs once, as in the barrier, and no message is
// sent.

const (
	// placeBytes is what a rank may store: a line.
	placeBytes = lineBytes
	// mostAtTable is how many ranks there may be, each of which has memory for a table.
	mostAtTable = 256
)

// tableBytes is how long a table is: a place for each rank, and one for the total.
func tableBytes(size int) int {
	if size > mostAtTable {
		return 0
	}
	return placeBytes * (size + 1)
}

// placeAt is the place of a rank in a table, or for the size that of the total.
func placeAt(table []byte, rank int) []byte { return table[placeBytes*rank:][:placeBytes] }

// atTable tells whether vectors of so many bytes are added up at a table.
func (w *World) atTable(bytes int) bool {
	wanted := w.settings.tuning.Algorithm
	return w.rooted && bytes <= placeBytes && w.size <= mostAtTable && w.sharing && len(w.hosts.ranks) == 1 && (wanted == tuning.ByCost || wanted == tuning.Short)
}

// addAtTable gives the total of all to every rank: the elements of ranks in their order.
func addAtTable[T any](ctx context.Context, r *round, in, out []T, by operation[T]) error {
	w, m, number := r.w, r.w.barrier, r.w.number+1
	if err := r.approach(ctx, 0); err != nil {
		return err
	}
	block, err := w.blockOf(0)
	if err != nil {
		return w.post.failed(r.op, r.signature.number, &linkageError{0, err})
	}
	table := tableOver(block, w.size)
	if m.announced != number {
		copy(placeAt(table, w.rank), bytesOf(in))
	}
	add := func() {
		total := elementsOf[T](placeAt(table, w.size), len(in))
		copy(total, elementsOf[T](placeAt(table, 0), len(in)))
		for rank := 1; rank < w.size; rank++ {
			by.add(total, elementsOf[T](placeAt(table, rank), len(in)), true)
		}
	}
	if err := m.meetAndDo(ctx, r.op, number, r.history, add); err != nil {
		return err
	}
	copy(bytesOf(out), placeAt(table, w.size))
	w.number = number
	return nil
}

// Package grid is a two-dimensional array over the ranks of a job. Each rank has a block of the array, with a border
// that receives the edges of its neighbors.
//
//	field, err := grid.New(ctx, w, rows, columns, 2, grid.PSCW)
//	if err != nil {
//		return err
//	}
//	for step := range steps {
//		if err := field.Exchange(ctx); err != nil { // the borders have the neighbors' edges
//			return err
//		}
//		… compute field.Row(i) for i from 0 to field.Rows-1
//	}
//	return field.Close()
//
// Edges are put into the neighbors' memory. The ranks synchronize by fences, by the calls for groups (Post, Start,
// Complete, Wait), or by notified puts. Borders at the edge of the whole array, which have no neighbor, keep what the
// program stores there. Corners of borders are not exchanged.
package grid

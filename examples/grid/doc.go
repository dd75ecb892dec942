// Package grid is an array in two dimensions over the ranks of a job: each has a block of it, and a border around the
// block in which its neighbours leave their edges.
//
//	field, err := grid.New(ctx, w, rows, columns, 2, grid.PSCW)
//	if err != nil {
//		return err
//	}
//	for step := range steps {
//		if err := field.Exchange(ctx); err != nil { // the borders are those of the neighbours
//			return err
//		}
//		… compute field.Row(i) for i from 0 to field.Rows-1
//	}
//	return field.Close()
//
// Edges are put into the neighbours' memory, in one of three ways that programs synchronize: by fences, by the
// calls for groups (Post, Start, Complete, Wait), or by puts that notify. What lies outside of the array, in borders
// without a neighbour, stays what the program has made it. Corners of borders are not exchanged.
package grid

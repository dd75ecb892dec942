package main

import "golang.org/x/sys/cpu"

// vectors returns arithmetic on several elements at a time, or nil if the processor has no instructions for it.
func vectors() *arithmetic {
	if !cpu.X86.HasAVX2 {
		return nil
	}
	return &arithmetic{
		addTile:   squares(addTileVector, addTile),
		storeTile: squares(storeTileVector, storeTile),
		add: func(to, from []float64) {
			if n := len(from); n > 0 {
				addVector(&to[:n][0], &from[0], n)
			}
		},
	}
}

// squares returns a tile that transposes squares of 4 by 4 by vector, and the rest by loop.
func squares(vector func(to *float64, stride int, from *float64, order, rows, columns int), loop tile) tile {
	return func(to []float64, stride int, from []float64, order, rows, columns int) {
		high, wide := rows&^3, columns&^3
		if high == 0 || wide == 0 {
			loop(to, stride, from, order, rows, columns)
			return
		}
		// The last elements are checked: all others lie before them.
		_, _ = to[(high-1)*stride+wide-1], from[(wide-1)*order+high-1]
		vector(&to[0], stride, &from[0], order, high, wide)
		if wide < columns {
			loop(to[wide:], stride, from[wide*order:], order, high, columns-wide)
		}
		if high < rows {
			loop(to[high*stride:], stride, from[high:], order, rows-high, columns)
		}
	}
}

// addTileVector is addTile for more than 0 rows and columns, multiples of 4.
//
//go:noescape
func addTileVector(to *float64, stride int, from *float64, order, rows, columns int)

// storeTileVector is storeTile for more than 0 rows and columns, multiples of 4.
//
//go:noescape
func storeTileVector(to *float64, stride int, from *float64, order, rows, columns int)

// addVector is add for n elements; n is more than 0.
//
//go:noescape
func addVector(to, from *float64, n int)

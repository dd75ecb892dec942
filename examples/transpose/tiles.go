package main

// An arithmetic moves and adds elements.
type arithmetic struct {
	// addTile adds the transpose, storeTile stores it.
	addTile, storeTile tile
	// add adds elements to others.
	add func(to, from []float64)
}

// A tile adds or stores the transpose of a part of a matrix: columns of rows elements each. The columns are order
// apart in from, those of to stride. It adds 1 to the elements of from.
type tile func(to []float64, stride int, from []float64, order, rows, columns int)

// loops is arithmetic in Go, which the compiler does one element at a time.
var loops = arithmetic{addTile: addTile, storeTile: storeTile, add: add}

func addTile(to []float64, stride int, from []float64, order, rows, columns int) {
	c := 0
	for ; c+4 <= columns; c += 4 {
		addFour(to[c:], stride, four(from[c*order:], order, rows))
	}
	for ; c < columns; c++ {
		column := from[c*order:][:rows]
		for r, value := range column {
			to[r*stride+c] += value
			column[r] = value + 1
		}
	}
}

func storeTile(to []float64, stride int, from []float64, order, rows, columns int) {
	c := 0
	for ; c+4 <= columns; c += 4 {
		storeFour(to[c:], stride, four(from[c*order:], order, rows))
	}
	for ; c < columns; c++ {
		column := from[c*order:][:rows]
		for r, value := range column {
			to[r*stride+c] = value
			column[r] = value + 1
		}
	}
}

// four returns four adjacent columns.
func four(from []float64, order, rows int) [4][]float64 {
	return [4][]float64{from[:rows], from[order:][:rows], from[2*order:][:rows], from[3*order:][:rows]}
}

// addFour adds four columns to lines that are stride apart, and adds 1 to the columns. Adjacent elements are written
// together.
func addFour(to []float64, stride int, columns [4][]float64) {
	a, b, c, d := columns[0], columns[1], columns[2], columns[3]
	b, c, d = b[:len(a)], c[:len(a)], d[:len(a)]
	for r := range a {
		line := to[r*stride:][:4]
		line[0] += a[r]
		line[1] += b[r]
		line[2] += c[r]
		line[3] += d[r]
		a[r]++
		b[r]++
		c[r]++
		d[r]++
	}
}

// storeFour is like addFour, and stores instead of adding.
func storeFour(to []float64, stride int, columns [4][]float64) {
	a, b, c, d := columns[0], columns[1], columns[2], columns[3]
	b, c, d = b[:len(a)], c[:len(a)], d[:len(a)]
	for r := range a {
		line := to[r*stride:][:4]
		line[0], line[1], line[2], line[3] = a[r], b[r], c[r], d[r]
		a[r]++
		b[r]++
		c[r]++
		d[r]++
	}
}

func add(to, from []float64) {
	to = to[:len(from)]
	for i, value := range from {
		to[i] += value
	}
}

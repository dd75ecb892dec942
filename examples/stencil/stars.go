package main

// An arithmetic computes lines.
type arithmetic struct {
	// addStars adds to each element of out the star of an element of lines. A star is a weighted sum of differences.
	// Weight k, counted from 1, is that of the elements k after and k before the middle, in its line and in its column.
	// Lines are stride apart. The first middle is radius lines and radius elements after the beginning.
	addStars func(out, lines []float64, stride int, weights []float64)
	// increase adds 1 to each element.
	increase func(line []float64)
}

// loops is arithmetic in Go, which the compiler does one element at a time.
var loops = arithmetic{addStars: addStars, increase: increase}

func addStars(out, lines []float64, stride int, weights []float64) {
	radius := len(weights)
	// part returns the elements at an offset below and to the right of the middles.
	part := func(below, right int) []float64 { return lines[(radius+below)*stride+radius+right:][:len(out)] }
	if radius == 2 {
		addShortStars(out, part(-2, 0), part(-1, 0), part(1, 0), part(2, 0), lines[2*stride:], weights[0], weights[1])
		return
	}
	for k, weight := range weights {
		k++
		addDifferences(out, part(k, 0), part(-k, 0), part(0, k), part(0, -k), weight)
	}
}

// addDifferences adds the weighted differences of two pairs of lines.
func addDifferences(out, below, above, right, left []float64, weight float64) {
	below, above, right, left = below[:len(out)], above[:len(out)], right[:len(out)], left[:len(out)]
	for c := range out {
		out[c] += weight * (below[c] - above[c] + right[c] - left[c])
	}
}

// addShortStars adds stars of radius 2 in one pass. line begins 2 elements before the first star's middle.
func addShortStars(out, above2, above1, below1, below2, line []float64, weight1, weight2 float64) {
	// All slices get the same length, which removes bounds checks.
	n := len(out)
	above2, above1, below1, below2 = above2[:n], above1[:n], below1[:n], below2[:n]
	left2, left1, right1, right2 := line[:n], line[1:][:n], line[3:][:n], line[4:][:n]
	for c := range out {
		out[c] += weight1*(below1[c]-above1[c]+right1[c]-left1[c]) + weight2*(below2[c]-above2[c]+right2[c]-left2[c])
	}
}

func increase(line []float64) {
	for c := range line {
		line[c]++
	}
}

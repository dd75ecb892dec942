package main

import "golang.org/x/sys/cpu"

// vectors returns arithmetic on several elements at a time, or nil if the processor has no instructions for it.
func vectors() *arithmetic {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA {
		return nil
	}
	return &arithmetic{
		addStars: func(out, lines []float64, stride int, weights []float64) {
			radius := len(weights)
			if len(out) == 0 || radius == 0 {
				return
			}
			// The last element of each part is checked: all others lie before it.
			middle := lines[radius*stride+radius:]
			_, _ = middle[radius*stride+len(out)-1], middle[radius+len(out)-1]
			addStarsVector(&out[0], &middle[0], len(out), stride, radius, &weights[0])
		},
		increase: func(line []float64) {
			if len(line) > 0 {
				increaseVector(&line[0], len(line), 1)
			}
		},
	}
}

// addStarsVector is addStars; in is the first middle. weights has radius elements, and n is more than 0.
//
//go:noescape
func addStarsVector(out, in *float64, n, stride, radius int, weights *float64)

// increaseVector adds by to n elements; n is more than 0.
//
//go:noescape
func increaseVector(line *float64, n int, by float64)

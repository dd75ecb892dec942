package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// numbered returns n different elements, all of them integers, which no sum here rounds.
func numbered(n, from int) []float64 {
	elements := make([]float64, n)
	for i := range elements {
		elements[i] = float64(from + i)
	}
	return elements
}

// Loops and vector code transpose tiles of any shape at every alignment, and write nothing around them.
func TestTiles(t *testing.T) {
	for name, by := range map[string]*arithmetic{"loops": &loops, "vectors": vectors()} {
		t.Run(name, func(t *testing.T) {
			if by == nil {
				t.Skip("skipped: this processor has no vectors for tiles")
			}
			for rows := 1; rows < 22; rows++ {
				for columns := 1; columns < 22; columns++ {
					order, stride, at := rows+rows%3, columns+columns%4, (rows+columns)%5
					for _, adds := range []bool{true, false} {
						from, to := numbered(at+columns*order+7, 0), numbered(at+rows*stride+7, 10000)
						wantFrom, wantTo := slices.Clone(from), slices.Clone(to)
						for r := range rows {
							for c := range columns {
								if !adds {
									wantTo[at+r*stride+c] = 0
								}
								wantTo[at+r*stride+c] += from[at+c*order+r]
								wantFrom[at+c*order+r]++
							}
						}
						tile := by.storeTile
						if adds {
							tile = by.addTile
						}
						tile(to[at:], stride, from[at:], order, rows, columns)
						require.Equal(t, wantFrom, from, "%d x %d, adds %v", rows, columns, adds)
						require.Equal(t, wantTo, to, "%d x %d, adds %v", rows, columns, adds)
					}
				}
			}
			for n := range 71 {
				at := n % 8
				from, to := numbered(at+n+7, 0), numbered(at+n+7, 10000)
				want := slices.Clone(to)
				for i := at; i < at+n; i++ {
					want[i] += from[i]
				}
				by.add(to[at:at+n], from[at:at+n])
				require.Equal(t, want, to, "%d elements", n)
				require.Equal(t, numbered(at+n+7, 0), from)
			}
		})
	}
}

// Blocks that are too short cause a panic before anything is read.
func TestShortBlocks(t *testing.T) {
	for _, by := range []*arithmetic{&loops, vectors()} {
		if by == nil {
			continue
		}
		const rows, columns, order, stride = 8, 12, 20, 30
		to, from := make([]float64, (rows-1)*stride+columns), make([]float64, (columns-1)*order+rows)
		for _, tile := range []tile{by.addTile, by.storeTile} {
			require.NotPanics(t, func() { tile(to, stride, from, order, rows, columns) })
			require.Panics(t, func() { tile(to[:len(to)-1:len(to)-1], stride, from, order, rows, columns) })
			require.Panics(t, func() { tile(to, stride, from[:len(from)-1:len(from)-1], order, rows, columns) })
		}
		require.Panics(t, func() { by.add(to[:4:4], from[:5]) })
	}
}

func BenchmarkTiles(b *testing.B) {
	for name, by := range map[string]*arithmetic{"loops": &loops, "vectors": vectors()} {
		for _, size := range []int{32, 500} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				if by == nil {
					b.Skip("skipped: this processor has no vectors for tiles")
				}
				m := &matrix{job: &job{order: 1000, tile: 32}, block: size}
				from, to := make([]float64, m.order*size), make([]float64, m.order*size)
				b.SetBytes(int64(16 * size * size))
				for b.Loop() {
					if err := m.transpose(to, m.order, from, by.addTile, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

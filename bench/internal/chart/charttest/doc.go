// Package charttest reads drawings of package chart, and checks that they can be read: nothing is clipped or covered.
//
//	image := charttest.Check(t, "put", c.SVG())
//	assert.Len(t, image.Curves, 2)
package charttest

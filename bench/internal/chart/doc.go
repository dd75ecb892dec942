// Package chart draws curves over two axes as SVG.
//
// All texts are outside the axes, where no curve is. Curves differ without colors, too.
//
//	c := &chart.Chart{Title: "put", XLabel: "size", YLabel: "us", Curves: curves}
//	if c.FitAxes(chart.ByteUnits, chart.PlainNumber) {
//		text := c.SVG()
//		...
//	}
package chart

import _ "github.com/onesided/rma/internal/platform"

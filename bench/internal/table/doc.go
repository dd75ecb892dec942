// Package table formats numbers and columns of text.
//
//	var b strings.Builder
//	table.Align(&b, [][]string{{"fence", table.Value(&us)}}, func(column int) bool { return column == 1 })
package table

import _ "github.com/onesided/rma/internal/platform"

// Package cli has what the commands of bench share: their names, errors of usage, the lines of progress, and the
// forecast of the remaining time.
//
//	if err := cli.CheckNamed("figure", flags.Args(), names); err != nil {
//		return err
//	}
//	show, done := cli.Progress(stderr)
//	defer done()
package cli

import _ "github.com/onesided/rma/internal/platform"

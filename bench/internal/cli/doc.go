// Package cli has what the commands of bench share: their names, errors of usage, the lines of progress, and the forecast of the
// remaining time.
package cli

import _ "github.com/onesided/rma/internal/platform"

// Package benchtest has what tests of several packages of bench share.
package benchtest

import _ "github.com/onesided/rma/internal/platform"

// Package switches shows the effect of each switch of -set: cases with the switch at its default and at another value,
// in turns.
package switches

import _ "github.com/onesided/rma/internal/platform"

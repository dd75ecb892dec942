// Package switches shows the effect of each switch of -set: cases with the switch alternately at its default and at
// another setting.
package switches

import _ "github.com/onesided/rma/internal/platform"

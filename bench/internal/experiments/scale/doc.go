// Package scale shows how time and memory of a rank grow with the number of ranks, and by which law, in virtual time.
package scale

import _ "github.com/onesided/rma/internal/platform"

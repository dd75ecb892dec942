// Package traces has sequences of uses of buffers, such as programs make that read and write windows: by
// them it is compared how buffers get to a card. They have the profiles of reuse of the papers:
// a buffer that is used all the time, many that are used some hundred times, a spectrum (paper B), what is
// never used again, as when integers are sorted, mixes of them, and programs that change.
//
// A trace is the same for the same seed, everywhere.
package traces

import _ "github.com/onesided/rma/internal/platform"

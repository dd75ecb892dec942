// Package traces has sequences of uses of buffers, like those of programs that read and write windows. Protocols
// that move buffers to a card are compared by them. They have the profiles of reuse of the papers:
//
//   - one buffer that is used all the time;
//   - many that are used some hundred times;
//   - a spectrum (paper B);
//   - buffers that are never used again, as in integer sorting;
//   - mixes of these, and programs that change.
//
// A trace is the same for the same seed, everywhere.
package traces

import _ "github.com/onesided/rma/internal/platform"

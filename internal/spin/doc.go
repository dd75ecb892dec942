// Package spin is for loops that look at memory until somebody else changes it.
//
// A processor runs ahead in such a loop: it has many loads of the same word on their way. That takes from the
// other processor where two are one core, and when the word changes all of it is thrown away. [Relax] between
// two looks keeps it from that, for some 10 to 50 ns, by which the end of the loop comes later at most.
package spin

import _ "github.com/onesided/rma/internal/platform"

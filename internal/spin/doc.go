// Package spin is for loops that poll memory until another thread changes it.
//
// In such a loop a processor runs ahead: it issues many loads of the same word. They take resources from the other
// hyperthread of the core, and all of them are discarded when the word changes. [Relax] between two polls prevents
// this. It takes about 10 to 50 ns, by which the end of the loop is delayed at most.
package spin

import _ "github.com/onesided/rma/internal/platform"

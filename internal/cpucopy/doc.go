// Package cpucopy copies memory with the CPU for those who hand large pieces to
// another core: the devices whose peers share memory with this process.
//
// The runtime's copy is the best there is for short pieces. Beyond, two others are
// better where the processor has them, each over a range of sizes:
//
//   - while source and destination stay in the first-level cache, a loop of
//     64-byte vectors with its stores aligned to cache lines;
//   - above, the string instruction, which takes whole lines without reading
//     first what it overwrites. It is slow where the destination lies less than
//     a line above the source, modulo 4 KiB; the loop of vectors is not.
//
// Copies are plain stores: whoever publishes them does it by an atomic store
// afterwards, which the processors here do not move ahead of either. Nothing is
// written past the caches, because what is handed over is read soon.
//
// With the race detector all copies are the runtime's, which it sees.
package cpucopy

import _ "github.com/onesided/rma/internal/platform"

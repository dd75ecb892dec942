// Package kernels measures kernels of the examples as whole jobs, alternating with their MPI versions.
//
// The command kernels compares the speed of whole jobs: the commands gups, stencil and transpose of examples, and
// their MPI versions. The program builds them and cmd/rmarun, so it runs inside the module only. The MPI version of
// gups is examples/gups/peer/gups.c, which is built with each peer. The MPI versions of the other two are those of
// the Parallel Research Kernels (MPIRMA), which the user builds with the peers. -prk names a directory with
// stencil.openmpi, stencil.mpich, transpose.openmpi and transpose.mpich, or some of them. Without it ours are
// measured alone. All have the same sizes: 2^22 words, over TCP 2^20, and the order 1000 for 300 iterations.
//
// A round goes kernel by kernel, every other round in the opposite order. The ratio is computed and compared with
// goals as with -peers; for all units more is better. A kernel may take a minute. One that fails or takes longer is
// named below the table, and in the latter case is not run again.
package kernels

import _ "github.com/onesided/rma/internal/platform"

// Package peers runs the programs of Open MPI and MPICH that measure the same cases, as far as these are installed.
//
// Their sources are in programs. Build compiles them with a peer's compiler.
//
//	found, missing := peers.Find(ctx)
//	for _, p := range found {
//		if err := p.Build(ctx, dir); err != nil {
//			missing = append(missing, peers.LeftOut(p, err))
//		}
//	}
package peers

import _ "github.com/onesided/rma/internal/platform"

// Package pmi speaks the PMI-1 wire protocol, by which a process manager and the
// ranks that it starts exchange what the ranks need to find each other: Hydra's
// mpiexec serves it, and Slurm's srun --mpi=pmi2, and [Server] for one machine.
//
//	client, err := pmi.FromEnvironment()
//	err = client.Put("address-0", address)
//	err = client.Barrier(ctx)
//	other, err := client.Get("address-1")
//	err = client.Finalize()
//
// A value is seen after a barrier. Managers cut long values silently or fall out of
// step over them, so the client splits a value over several keys, writes each
// request at once and awaits its answer before the next.
package pmi

import _ "github.com/onesided/rma/internal/platform"

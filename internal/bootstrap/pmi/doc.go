// Package pmi speaks the PMI-1 wire protocol. By it a process manager and the ranks that it starts exchange what the
// ranks need to find each other. Hydra's mpiexec and Slurm's srun --mpi=pmi2 serve it, and so does [Server] for one
// machine.
//
//	client, err := pmi.FromEnvironment()
//	err = client.Put("address-0", address)
//	err = client.Barrier(ctx)
//	other, err := client.Get("address-1")
//	err = client.Finalize()
//
// A value is visible after a barrier. Managers truncate long values silently, or lose synchronization. So the client
// splits a value over several keys, writes each request at once, and waits for its response before the next.
package pmi

import _ "github.com/onesided/rma/internal/platform"

// Package runner measures a job: on ranks that are goroutines, processes or tasks of a simulator, or as one of a
// launcher's ranks.
//
//	o, selection, err := runner.Parse([]string{"-device", "shm", "put_flush_lat:8"})
//	if err != nil {
//		return err
//	}
//	jobs, err := selection.Jobs(0)
//	if err != nil {
//		return err
//	}
//	err = o.Start(ctx, jobs[0], os.Stderr, runner.Reporter("text", os.Stdout, os.Stderr))
//
// # Invariants
//
//   - Ranks that are processes run this program, with a command line that NewFlags reads. They report the results of rank
//     0 as JSON, a line each.
//   - A rank that fails because another rank did ends with StatusOfPeer. The first other error is that of the job.
//   - Rank 0's clock counts. What depends on it is broadcast, so that all ranks have the same number of iterations.
package runner

import _ "github.com/onesided/rma/internal/platform"

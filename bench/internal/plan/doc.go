// Package plan arranges the cells that a command line names as jobs, and has their results.
//
// A Job is what one set of ranks measures.
//
//	named, err := plan.Parse([]string{"put_bw:8,1024", "fop_lat"})
//	if err != nil {
//		return err
//	}
//	jobs, err := (&plan.Selection{Cases: named}).Jobs(0)
package plan

import _ "github.com/onesided/rma/internal/platform"

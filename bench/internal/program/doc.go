// Package program runs other programs within a time, and says in one line why they failed.
//
//	output, err := program.Run(ctx, []string{"mpirun", "-n", "2", "job"}, os.Environ(), time.Minute, program.GracePeriod)
//	if errors.Is(err, program.ErrTimeout) {
//		fmt.Println(err)
//	}
package program

import _ "github.com/onesided/rma/internal/platform"

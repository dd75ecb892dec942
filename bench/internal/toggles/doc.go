// Package toggles has the switches of -set: those of the library's optimizations, and of what windows promise.
//
//	var s toggles.Settings
//	if err := s.Add("pack=off"); err != nil {
//		return err
//	}
//	err := world.Run(ctx, 2, body, s.JobOptions()...)
package toggles

import _ "github.com/onesided/rma/internal/platform"

// Package machine describes what measurements depend on besides the programs: the machine, and its other work meanwhile.
//
//	before := machine.Now()
//	measure()
//	if cores, known := machine.Now().OthersSince(before); known {
//		fmt.Println(machine.This(), cores)
//	}
package machine

import _ "github.com/onesided/rma/internal/platform"

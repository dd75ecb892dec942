// Package device names the devices of ranks, and says whether a launcher started this process as one.
//
//	if device.Launched() {
//		return errors.New("run it without a launcher")
//	}
//	card, err := device.Card(device.SimulatedCard)
package device

import _ "github.com/onesided/rma/internal/platform"

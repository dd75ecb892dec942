// Package eventchannel is the completion channel of cards whose sleepers are goroutines: those of one
// process, and those for which a goroutine waits for what the system tells.
package eventchannel

import _ "github.com/onesided/rma/internal/platform"

// Package eventchannel has a verbs.CompletionChannel whose sleepers are goroutines of one process. It also serves
// devices for which a goroutine waits for events of the system.
package eventchannel

import _ "github.com/onesided/rma/internal/platform"

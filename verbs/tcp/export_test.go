package tcp

import (
	"time"

	"github.com/onesided/rma/verbs"
)

// CallsAgainSoon has a device call peers again that end the connection, with short pauses.
func CallsAgainSoon(d verbs.Device) { d.(*device).connectionManager.rest = time.Millisecond }

// Package bootconn makes the connections over which processes find each other before they have
// devices: TCP that is given up when the other host is silent for long, encrypted if the
// [Settings] have a TLS configuration. What goes over a line comes after package proof's
// dialogue, which whoever accepts demands before anything else.
//
//	conn, err := settings.Dialer(5*time.Second).DialContext(ctx, "tcp", address)
//	secure := settings.Call(conn, host)
//	err = line.Handshake(secure)
//	err = proof.Dial(secure, key, purpose)
package bootconn

import _ "github.com/onesided/rma/internal/platform"

// Package bootconn makes the connections over which processes find each other before they have devices. They are TCP
// connections that are given up when the other host is silent for long. They are encrypted if the [Settings] have a
// TLS configuration. Messages on a connection follow the dialogue of package proof, which the accepting side demands
// first.
//
//	conn, err := settings.Dialer(5*time.Second).DialContext(ctx, "tcp", address)
//	secure := settings.Call(conn, host)
//	err = bootconn.Handshake(secure)
//	err = proof.Dial(secure, key, purpose)
package bootconn

import _ "github.com/onesided/rma/internal/platform"

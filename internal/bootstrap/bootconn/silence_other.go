//go:build !linux

package bootconn

import "syscall"

// limitSilence does nothing: without Linux a connection with unacknowledged bytes lives as long as the system
// decides.
func (*Settings) limitSilence(_, _ string, _ syscall.RawConn) error { return nil }

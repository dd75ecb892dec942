//go:build unix && !linux

package main

import "syscall"

// attributes of a rank's process: it leads a group of its own, so that what it
// starts can be ended with it. These systems have no signal for a parent's death.
func attributes() *syscall.SysProcAttr { return groupOfItsOwn() }

package main

import "syscall"

// attributes of a rank's process: it leads a group of its own, so that what it
// starts can be ended with it, and dies with rmarun.
func attributes() *syscall.SysProcAttr {
	a := groupOfItsOwn()
	a.Pdeathsig = syscall.SIGKILL
	return a
}

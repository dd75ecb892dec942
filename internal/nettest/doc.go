// Package nettest gives a test hosts of its own: network namespaces that are joined by a
// bridge, whose links the test can cut.
//
//	func TestFarApart(t *testing.T) {
//		network := nettest.New(t, 3)
//		server := network.Command(0, program, "serve", network.Address(0).String())
//		…
//		network.Cut(0)
//	}
//
// It needs Linux and root, and the programs ip and nsenter; elsewhere the test is skipped, with
// the reason.
//
// # Invariants
//
// Nothing of the machine's own network is touched: the bridge is in a namespace of its own,
// and the links between it and the hosts never were anywhere else. The hosts
// reach one another and themselves, and nothing else but the bridge's own address, where the
// package finds out whether a link carries.
//
// Namespaces have no names and no files. They are there because the test's process has them
// open, and are gone with it, by whatever cause; so networks of tests that run at the
// same time do not know of each other, though they use the same addresses.
//
// When the test ends, and when its process does, all processes on its hosts are killed, those
// included that others have started. A watcher does that, a process of the same test binary; it
// is started by the initialization of this package, before tests and main run.
//
// Hosts share everything but the network: files, memory, process numbers.
package nettest

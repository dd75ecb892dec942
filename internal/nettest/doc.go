// Package nettest gives a test its own hosts: network namespaces joined by a bridge, whose links the test can cut.
//
//	func TestFarApart(t *testing.T) {
//		network := nettest.New(t, 3)
//		server := network.Command(0, program, "serve", network.Address(0).String())
//		…
//		network.Cut(0)
//	}
//
// It needs Linux, root, and the programs ip and nsenter. Otherwise the test is skipped, with the reason.
//
// # Invariants
//
// The machine's own network is not touched. The bridge is in a namespace of its own, and the links between it and the
// hosts never were in another one. The hosts reach one another and themselves. Besides they reach only the bridge's
// own address, at which the package checks whether a link carries packets.
//
// Namespaces have no names and no files. They exist because the test's process has them open, and end with it, for
// whatever reason. So networks of tests that run at the same time are independent, though they use the same
// addresses.
//
// When the test ends, and when its process does, all processes on its hosts are killed, including those that these have
// started. A watcher does that, a process of the same test binary. It runs in the initialization of this package,
// before tests and main.
//
// Hosts share everything but the network: files, memory, process numbers.
package nettest

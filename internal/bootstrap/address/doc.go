// Package address chooses the address at which a rank listens for the others.
//
//	mine, err := address.Default(ctx)
//
// Without a word from the user it is the IPv4 address from which the host's default
// route leaves, or another global one of an interface that is up; IPv6 if there is no
// IPv4; loopback if there is nothing else. An interface that by its name joins the
// containers of one host is passed over, unless the default route leaves by it: every
// host has the same address on such a bridge, and it leads nowhere.
//
// RMA_ADDRESS overrides this:
//
//	RMA_ADDRESS=10.1.2.3     this address
//	RMA_ADDRESS=10.1.0.0/16  the first of this host's addresses in the range
//	RMA_ADDRESS=ib0          the first address of the interface
//	RMA_ADDRESS=node7-fast   the first address of this name that this host has
//
// There is no port in it: the system chooses that. What is none of these is an error
// that says what is allowed, and what the host does not have is one that lists what it
// has, never a silent choice of something else. The choice is a function of the interfaces and the route
// alone ([Choose], [Find]).
package address

import _ "github.com/onesided/rma/internal/platform"

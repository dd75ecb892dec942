// Package address chooses the address at which a rank listens for the others.
//
//	mine, err := address.Default(ctx)
//
// By default it is the IPv4 address from which the host's default route leaves, or another global one of an interface
// that is up. It is an IPv6 address if there is no IPv4 address, and loopback if there is nothing else. Interfaces
// that by their names join the containers of one host are skipped, unless the default route leaves by them. Every
// host has the same address on such a bridge, and it leads nowhere.
//
// RMA_ADDRESS overrides this:
//
//	RMA_ADDRESS=10.1.2.3     this address
//	RMA_ADDRESS=10.1.0.0/16  the first of this host's addresses in the range
//	RMA_ADDRESS=ib0          the first address of the interface
//	RMA_ADDRESS=node7-fast   the first address of this name that this host has
//
// The value has no port: the system chooses that. Any other text is an error that says what is allowed. An address
// that the host does not have is an error that lists the host's addresses. The choice depends on the interfaces and
// the routes only ([Choose], [Find]).
package address

import _ "github.com/onesided/rma/internal/platform"

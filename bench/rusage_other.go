//go:build !unix

package main

import "time"

// processorTime is 0: the system does not tell.
func processorTime() time.Duration { return 0 }

// childrenTime is 0, too.
func childrenTime() time.Duration { return 0 }

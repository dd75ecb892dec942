package window

import (
	"time"
	"unsafe"

	"github.com/onesided/rma/aggregate"
)

// An issue is an operation on count elements of a target, from origin, or into result, or both.
type issue struct {
	call                        string
	kind                        aggregate.Kind
	op                          Op
	begun                       time.Duration
	origin, result              unsafe.Pointer
	count, target, displacement int
}

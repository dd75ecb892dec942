package window

import (
	"context"

	"github.com/onesided/rma/world"
)

// A Synchronizer has the synchronization calls of a [Window], which do not depend on the element type. A function that only
// synchronizes takes a Synchronizer, and so a window of any type. The methods are documented at Window.
type Synchronizer interface {
	World() *world.World
	Group(ranks ...int) (Group, error)

	Fence(ctx context.Context, asserts ...Assert) error

	Start(ctx context.Context, group Group) error
	Complete(ctx context.Context) error
	Post(ctx context.Context, group Group) error
	Wait(ctx context.Context) error
	Test() (bool, error)

	Lock(ctx context.Context, kind LockKind, target int) error
	LockNow(ctx context.Context, kind LockKind, target int) error
	Unlock(ctx context.Context, target int) error
	LockAll(ctx context.Context, asserts ...Assert) error
	UnlockAll(ctx context.Context) error
	Flush(ctx context.Context, target int) error
	FlushAll(ctx context.Context) error
	FlushLocal(ctx context.Context, target int) error
	FlushLocalAll(ctx context.Context) error
	RFlush(target int) (Request, error)
	Sync() error

	WaitNotify(ctx context.Context, slot int, count uint64) error
	TestNotify(slot int, count uint64) (bool, error)
}

var _ Synchronizer = (*Window[int8])(nil)

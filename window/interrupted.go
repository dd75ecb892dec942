package window

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/onesided/rma/internal/job"
	"github.com/onesided/rma/verbs"
)

// A call that closes an epoch, and Post, may be interrupted: it returns early, and the same call made again continues.
//
//   - What it has sent stays sent. The call that continues sends the rest.
//   - It returns the error that has interrupted it, and no other. An error of another part of the call is kept, and the
//     call that continues returns it at its end.
//   - No call waits for a lost rank. A call that has found one, and that nothing interrupts, ends.

// interrupted reports whether a call with error err may be made again. Either its context has ended it, or this process
// was short of a resource for a new connection, or a message is still to be sent.
func interrupted(ctx context.Context, err error) bool {
	if err == nil {
		return false
	}
	return ctx.Err() != nil && job.Is(err, ctx.Err()) || job.Is(err, verbs.ErrShortage) || job.Is(err, errUnsent)
}

// errUnsent is wrapped by the error of a message that was not sent to a rank which may still wait for it.
var errUnsent = errors.New("a message was not sent: make the call again")

// keepOpenIfUnsent returns the error of sending a message without which a call must not end. A lost rank waits for no
// message, nor does any rank when the World is closed.
func keepOpenIfUnsent(ctx context.Context, err error) error {
	if err == nil || interrupted(ctx, err) || job.Failed(err) != nil || job.Is(err, job.ErrClosed) {
		return err
	}
	return fmt.Errorf("%w: %w", err, errUnsent)
}

// throughShortage makes a call that must not be left to a later one, until this process has what a new connection
// takes.
func throughShortage(call func() error) error {
	for {
		if err := call(); !job.Is(err, verbs.ErrShortage) {
			return err
		}
	}
}

// keptErrors has the errors that an interrupted call has not returned. The call in progress alone uses it.
type keptErrors struct{ errs []error }

// add keeps an error, unless it is nil or says the same as another.
func (k *keptErrors) add(err error) {
	if err != nil && !slices.ContainsFunc(k.errs, func(before error) bool { return before.Error() == err.Error() }) {
		k.errs = append(k.errs, err)
	}
}

// take returns the errors and forgets them.
func (k *keptErrors) take() error {
	errs := k.errs
	k.errs = nil
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// takeOthers is take without the failures of ranks.
func (k *keptErrors) takeOthers() error {
	k.errs = slices.DeleteFunc(k.errs, func(err error) bool { return job.Failed(err) != nil })
	return k.take()
}

package job

import "github.com/onesided/rma/internal/errtext"

// Failed returns the *PeerError in err, or nil if there is none. Unlike errors.As it does not look into the cause of a
// context that has ended: there a *PeerError is what the program has ended the context for, and not the reason of err.
func Failed(err error) (failed *PeerError) {
	search(err, func(err error) bool {
		failed, _ = err.(*PeerError)
		return failed != nil
	})
	return failed
}

// Mismatched returns the *MeetingError in err, or nil if there is none. Like Failed, it does not look into the cause of a
// context.
func Mismatched(err error) (met *MeetingError) {
	search(err, func(err error) bool {
		met, _ = err.(*MeetingError)
		return met != nil
	})
	return met
}

// Is is errors.Is for the reason why a call of this rank has failed. It looks neither into the cause of a context that has
// ended, nor into a *PeerError, whose cause is the error of another rank. target is comparable.
func Is(err, target error) bool {
	return search(err, func(err error) bool {
		if err == target {
			return true
		}
		is, ok := err.(interface{ Is(target error) bool })
		return ok && is.Is(target)
	})
}

// search reports whether found holds for err or an error that it wraps, except the causes of contexts and of a *PeerError.
func search(err error, found func(error) bool) bool {
	if err == nil {
		return false
	}
	if found(err) {
		return true
	}
	switch e := err.(type) {
	case *PeerError:
		return false
	case *errtext.EndedError:
		return search(e.ContextErr(), found)
	case interface{ Unwrap() error }:
		return search(e.Unwrap(), found)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if search(err, found) {
				return true
			}
		}
	}
	return false
}

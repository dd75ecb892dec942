package root

import (
	"errors"
	"math"
	"net"
	"time"
)

// defaultNotice is the time after which a waiting rank logs its first warning, if its Settings name none.
const defaultNotice = 3 * time.Second

// firstNotice returns the time after which a waiting rank logs its first warning.
func (s *Settings) firstNotice() time.Duration {
	switch {
	case s.Notice == 0:
		return defaultNotice
	case s.Notice < 0:
		return math.MaxInt64
	}
	return s.Notice
}

// A notice decides when a waiting rank logs a warning: less often the longer it waits. A delay of rank 0 of some
// seconds is normal. An unknown name is most likely wrong, and is logged at once.
type notice struct {
	began time.Time
	// after is when the next log is due, since began.
	after time.Duration
	// unknown is set when an unknown name has been logged.
	unknown bool
}

func newNotice(now time.Time, first time.Duration) *notice { return &notice{began: now, after: first} }

// due reports whether to log that an attempt has failed with err.
func (n *notice) due(now time.Time, err error) bool {
	if !n.unknown && isUnknown(err) {
		n.unknown = true
		return true
	}
	if now.Sub(n.began) < n.after {
		return false
	}
	n.after *= 2
	return true
}

// isUnknown reports whether a host name is not known. In Kubernetes the name of a pod becomes known some time after
// the pod has started.
func isUnknown(err error) bool {
	var name *net.DNSError
	return errors.As(err, &name) && name.IsNotFound
}

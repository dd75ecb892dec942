package root

import (
	"errors"
	"net"
	"time"
)

// firstNotice is after how long a rank that waits in vain tells so.
const firstNotice = 3 * time.Second

// A notice decides when a rank tells what it waits for: seldom, and the more so the
// longer it lasts. That rank 0 starts some seconds after the others is as it may be; a
// name that nobody knows is most likely a wrong one, and told at once.
type notice struct {
	began time.Time
	// after is when the next is due, since began.
	after time.Duration
	// unknown: that the name is not known has been told.
	unknown bool
}

func newNotice(now time.Time) *notice { return &notice{began: now, after: firstNotice} }

// due tells whether to tell that an attempt has failed by err.
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

// isUnknown tells that a host name is not known. In Kubernetes that of a pod becomes
// known only some time after the pod has started.
func isUnknown(err error) bool {
	var name *net.DNSError
	return errors.As(err, &name) && name.IsNotFound
}

package root

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// listen listens on RMA_ROOT. It waits until the host's name is known: Kubernetes publishes the name of a pod some
// time after its start. It returns an error at once if an address is in use or is not this host's.
func listen(ctx context.Context, s *Settings) (net.Listener, error) {
	root := s.Root
	host, port, err := net.SplitHostPort(root)
	if err != nil {
		return nil, fmt.Errorf("%w=%s: %w", ErrListen, root, err)
	}
	addresses, err := s.resolve(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("%w=%s: %w", ErrListen, root, err)
	}
	l, err := s.connection().ListenFirst(ctx, addresses, port)
	if err != nil {
		return nil, fmt.Errorf("%w=%s: %w%s", ErrListen, root, err, advice(err))
	}
	return l, nil
}

// advice says what most likely must be changed.
func advice(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return " (this is not the host of " + rootVariable + ", where rank 0 has to run)"
	case errors.Is(err, syscall.EADDRINUSE):
		return " (another job or another rank 0 listens there)"
	}
	return ""
}

// resolve returns the addresses of host, those first that other hosts can reach.
func (s *Settings) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	notice := newNotice(time.Now(), s.firstNotice())
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err == nil {
			local := func(a netip.Addr) int {
				if a.Unmap().IsLoopback() {
					return 1
				}
				return 0
			}
			slices.SortStableFunc(addresses, func(a, b netip.Addr) int { return cmp.Compare(local(a), local(b)) })
			return addresses, nil
		}
		if ctx.Err() == nil && notice.due(time.Now(), err) {
			s.log().Warn("rank 0 waits for the host name of the root to be known", "root", s.Root, "why", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w; %w", err, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

package root

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// listen listens where the root has to be. It waits for the host's name to be known,
// for Kubernetes publishes that of a pod only some time after its start; that an
// address is in use, or not this host's, is an error at once.
func listen(ctx context.Context, root string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(root)
	if err != nil {
		return nil, fmt.Errorf("%w=%s: %w", ErrListen, root, err)
	}
	addresses, err := resolve(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("%w=%s: %w", ErrListen, root, err)
	}
	config := net.ListenConfig{KeepAliveConfig: keepAlive(), Control: limitSilence}
	var failures []error
	for _, address := range addresses {
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort(address.String(), port))
		if err == nil {
			return l, nil
		}
		failures = append(failures, err)
	}
	return nil, fmt.Errorf("%w=%s: %w", ErrListen, root, errors.Join(failures...))
}

// resolve finds the addresses of host, those first that other hosts can reach.
func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err == nil {
			for i, a := range addresses {
				addresses[i] = a.Unmap()
			}
			local := func(a netip.Addr) int {
				if a.IsLoopback() {
					return 1
				}
				return 0
			}
			slices.SortStableFunc(addresses, func(a, b netip.Addr) int { return cmp.Compare(local(a), local(b)) })
			return addresses, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

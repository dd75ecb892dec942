//go:build !linux

package nettest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

func newSpace() (*os.File, error) {
	return nil, fmt.Errorf("nettest: network namespaces on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func inside(*os.File, func() error) error { return errors.ErrUnsupported }

//go:build !linux

package jobtest

import "context"

// resources is empty: ranks that are processes need Linux.
type resources struct{}

func currentResources() (*resources, error) { return &resources{}, nil }

func (*resources) remain(context.Context) error { return nil }

//go:build !linux

package jobtest

import "context"

// holding is empty: ranks that are processes need Linux.
type holding struct{}

func holdings() (*holding, error) { return &holding{}, nil }

func (*holding) remain(context.Context) error { return nil }

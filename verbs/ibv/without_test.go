//go:build !ibverbs || !cgo || !linux

package ibv_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/ibv"
)

func TestWithout(t *testing.T) {
	_, err := ibv.Open(ibv.FromEnvironment())
	var incapable *verbs.CapabilityError
	require.ErrorAs(t, err, &incapable)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.Contains(t, err.Error(), "-tags ibverbs")
}

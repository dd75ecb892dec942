package proof

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkOwner for a user who is not root.
func TestCheckOwner(t *testing.T) {
	const self, another = 1000, 1001
	for _, c := range []struct {
		owner int
		mode  fs.FileMode
		ok    bool
	}{
		{self, 0o600, true}, {self, 0o400, true}, {self, 0o640, false}, {self, 0o604, false}, {self, 0o610, false},
		{0, 0o440, true}, {0, 0o640, true}, {0, 0o644, false}, {0, 0o660, false}, {0, 0o444, false},
		{another, 0o640, false}, {another, 0o644, false}, {another, 0o600, false},
	} {
		require.Equal(t, c.ok, checkOwner(c.owner, self, c.mode) == nil, "owner %d, mode %#o", c.owner, c.mode)
	}
}

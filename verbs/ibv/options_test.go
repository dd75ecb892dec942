package ibv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/verbs"
	"github.com/onesided/rma/verbs/ibv"
)

// Several cards have options each, with an entry of their own tables or one for all.
func TestRails(t *testing.T) {
	for _, c := range []struct {
		device, gid string
		want        []ibv.Options
		says        string
	}{
		{"", "", []ibv.Options{{}}, ""},
		{"mlx5_0:1", "3", []ibv.Options{{Device: "mlx5_0:1", GID: "3"}}, ""},
		{"mlx5_0,mlx5_1:2", "", []ibv.Options{{Device: "mlx5_0"}, {Device: "mlx5_1:2"}}, ""},
		{"mlx5_0,mlx5_1", "3", []ibv.Options{{Device: "mlx5_0", GID: "3"}, {Device: "mlx5_1", GID: "3"}}, ""},
		{"mlx5_0,mlx5_1", "3,4", []ibv.Options{{Device: "mlx5_0", GID: "3"}, {Device: "mlx5_1", GID: "4"}}, ""},
		{"mlx5_0,", "", nil, "of which a name is empty"},
		{"mlx5_0,mlx5_1", "1,2,3", nil, "as many entries as Device names cards, or one"},
		{"mlx5_0", "1,2", nil, "as many entries as Device names cards, or one"},
	} {
		got, err := ibv.Options{Device: c.device, GID: c.gid}.Rails()
		if c.says == "" {
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			continue
		}
		var wrong *verbs.ArgumentError
		require.ErrorAs(t, err, &wrong)
		require.ErrorContains(t, err, c.says)
	}
}

package kernel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/examples/internal/kernel"
)

func sum(fails error) *kernel.Kernel {
	count := 3
	return &kernel.Kernel{
		Name: "sum", About: "sums up", More: "It is short.",
		Flags: func(f *kernel.Flags) { f.Number(&count, "count", 1, 9, "count to `n`") },
		Check: func(ranks int) error {
			if count%ranks != 0 {
				return fmt.Errorf("-count %d: must be a multiple of the %d ranks", count, ranks)
			}
			return nil
		},
		Run: func(_ context.Context, r *kernel.Rank) error {
			r.Result("sum", float64(count), "things")
			return fails
		},
	}
}

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		arguments   []string
		fails       error
		status      int
		out, errout string
	}{
		{nil, nil, 0, "sum                               3 things\n", ""},
		{[]string{"-count", "8", "-ranks", "4"}, nil, 0, "sum                               8 things\n", ""},
		{nil, kernel.ErrVerification, 1, "sum                               3 things\n", "sum: verification failed\n"},
		{nil, errors.New("no luck"), 1, "sum                               3 things\n", "sum: no luck\n"},
		{[]string{"-count", "10"}, nil, 2, "", "sum: wrong usage: invalid value \"10\" for flag -count: must be a number from 1 to 9\nsum -h explains the usage\n"},
		{[]string{"-ranks", "2"}, nil, 2, "", "sum: wrong usage: -count 3: must be a multiple of the 2 ranks\nsum -h explains the usage\n"},
		{[]string{"-ranks", "0"}, nil, 2, "", "sum: wrong usage: invalid value \"0\" for flag -ranks: must be a number from 1 to 4096\nsum -h explains the usage\n"},
		{[]string{"more"}, nil, 2, "", "sum: wrong usage: \"more\": there are flags only\nsum -h explains the usage\n"},
	} {
		var out, errout bytes.Buffer
		require.Equal(t, c.status, sum(c.fails).Command(t.Context(), c.arguments, &out, &errout), "%v", c.arguments)
		require.Equal(t, c.out, out.String(), "%v", c.arguments)
		require.Equal(t, c.errout, errout.String(), "%v", c.arguments)
	}
}

func TestWhatLacks(t *testing.T) {
	asked := 0
	k := sum(nil)
	k.Lacks = func() error { asked++; return errors.New("no abacus") }
	var out, errout bytes.Buffer
	require.Equal(t, 2, k.Command(t.Context(), []string{"-ranks", "3"}, &out, &errout))
	require.Empty(t, out.String())
	require.Equal(t, "sum: wrong usage: no abacus\nsum -h explains the usage\n", errout.String())
	require.Equal(t, 1, asked)
	k.Lacks = func() error { return nil }
	require.Zero(t, k.Command(t.Context(), []string{"-ranks", "3"}, &out, &errout))
}

func TestHelp(t *testing.T) {
	var out, errout bytes.Buffer
	require.Zero(t, sum(nil).Command(t.Context(), []string{"-h"}, &out, &errout))
	require.Empty(t, errout.String())
	for _, part := range []string{"usage: sum [flags]\n\nsums up. ", "\nIt is short.\n", "-count n", "count to n, 1 to 9 (default 3)", "-ranks n", "exit status: "} {
		require.Contains(t, out.String(), part)
	}
}

func ExampleKernel_Command() {
	count := 2
	k := &kernel.Kernel{
		Name: "count", About: "counts",
		Flags: func(f *kernel.Flags) { f.Number(&count, "to", 1, 100, "count to `n`") },
		Run: func(_ context.Context, r *kernel.Rank) error {
			r.Result("count", float64(count*r.Size()), "things")
			return nil
		},
	}
	var out bytes.Buffer
	status := k.Command(context.Background(), []string{"-to", "5", "-ranks", "3"}, &out, &out)
	fmt.Print(status, " ", out.String())
	// Output: 0 count                            15 things
}

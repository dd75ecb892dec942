package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Nouns are singular after 1, and plural after 0 and 2.
func TestPrintNumbers(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printResult(&out, nil, totals{Files: 1, Bytes: 1, Words: 1, Distinct: 1, Overlong: 1, Binary: 1, Unreadable: 1, Shorter: 1}, 1))
	require.Equal(t, `1 file
1 byte
1 word
1 different word
1 word of more than 1024 bytes, not counted
1 binary file, not counted
1 link, device or the like, not counted
1 file or directory not readable, named above
1 file that became shorter, named above
`, out.String())
	out.Reset()
	require.NoError(t, printResult(&out, nil, totals{Files: 2}, 0))
	require.Equal(t, "2 files\n0 bytes\n0 words\n0 different words\n", out.String())
}

func TestPlural(t *testing.T) {
	for n, want := range map[uint64]string{0: "ranks", 1: "rank", 2: "ranks", 11: "ranks"} {
		require.Equal(t, want, plural(n, "rank", "ranks"), "%d", n)
	}
}

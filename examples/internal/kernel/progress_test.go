package kernel

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The progress line appears when the work has taken a while, is not rewritten too often, and is erased before a result.
func TestBar(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1000, 0)
	b := &bar{to: &out, now: func() time.Time { return now }}
	r := &Rank{Out: &out, bar: b}
	for done := range 50 {
		r.Progress(done, 100)
		now = now.Add(100 * time.Millisecond)
	}
	want := ""
	for _, line := range []string{" 10 %, 9s left", " 12 %, 9s left", " 14 %, 9s left"} {
		want += eraseLine + line
	}
	require.Equal(t, want, out.String()[:len(want)])
	out.Reset()
	r.Result("rate", 3, "Mop/s")
	require.Equal(t, eraseLine+"rate                              3 Mop/s\n", out.String())
	require.Nil(t, newBar(&out))
}

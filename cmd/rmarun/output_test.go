package main

import (
	"bytes"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// Lines come out one at a time, however they are read, those that are too long in pieces.
func TestStream(t *testing.T) {
	long := strings.Repeat("x", longestLine)
	text := "first\n\n" + long + "yz\n" + strings.Repeat("short\n", 20_000) + long[1:] + "\n" + long + long + "last"
	for name, from := range map[string]io.Reader{
		"at once":        strings.NewReader(text),
		"half":           iotest.HalfReader(strings.NewReader(text)),
		"with the error": iotest.DataErrReader(strings.NewReader(text)),
	} {
		t.Run(name, func(t *testing.T) {
			var lines writes
			stream(from, &output{to: &lines, lines: new(atomic.Uint64)}, "", new(tail))
			require.Equal(t, text+"\n", string(bytes.Join(lines, nil)))
			for _, line := range lines {
				end := bytes.IndexByte(line, '\n')
				require.True(t, end == len(line)-1 || end < 0 && len(line) == longestLine, "%d bytes with a line's end at %d", len(line), end)
			}
		})
	}
}

// writes are what has been written, one by one.
type writes [][]byte

func (w *writes) Write(data []byte) (int, error) {
	*w = append(*w, bytes.Clone(data))
	return len(data), nil
}

func BenchmarkStream(b *testing.B) {
	text := strings.Repeat("a short line\n", 10_000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		stream(strings.NewReader(text), &output{to: io.Discard, lines: new(atomic.Uint64)}, "", new(tail))
	}
}

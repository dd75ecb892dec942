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

// Without a label bytes are passed on unchanged, and with one line by line, however they are read. A line that is too
// long becomes several lines, and each of them but the first is marked as a continuation. So the original text can be
// restored, even if several ranks write at once.
func TestStream(t *testing.T) {
	long := strings.Repeat("x", longestLine)
	text := "first\n\n" + long + "yz\n" + strings.Repeat("short\n", 20_000) + long[1:] + "\n" + long + long + "last"
	for name, from := range map[string]func() io.Reader{
		"at once":        func() io.Reader { return strings.NewReader(text) },
		"half":           func() io.Reader { return iotest.HalfReader(strings.NewReader(text)) },
		"with the error": func() io.Reader { return iotest.DataErrReader(strings.NewReader(text)) },
	} {
		t.Run(name, func(t *testing.T) {
			var pieces writes
			o := &output{to: &pieces, lines: new(atomic.Uint64)}
			o.pass(from(), "", new(tail))
			require.Equal(t, text, string(bytes.Join(pieces, nil)))
			require.EqualValues(t, strings.Count(text, "\n"), o.lines.Load())
			pieces = nil
			o.pass(from(), "[1] ", new(tail))
			for _, piece := range pieces {
				require.True(t, bytes.HasSuffix(piece, []byte("\n")), "what another rank writes would go on with its line")
			}
			require.Equal(t, text+"\n", whole(t, "[1] ", bytes.Join(pieces, nil)))
		})
	}
}

// whole returns the text that a rank wrote, from the text that was passed on with a label.
func whole(t *testing.T, label string, labelled []byte) string {
	t.Helper()
	var text []byte
	for line := range bytes.Lines(labelled) {
		rest, begins := bytes.CutPrefix(line, []byte(label))
		if !begins {
			var continues bool
			rest, continues = bytes.CutPrefix(line, []byte(continued(label)))
			require.True(t, continues, "%.20q", line)
			text = bytes.TrimSuffix(text, []byte("\n"))
		}
		text = append(text, rest...)
	}
	return string(text)
}

// Text that a rank writes in one piece is not split at the end of a chunk, and kept lines are whole.
func TestStreamLines(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	from, to := io.Pipe()
	go func() {
		for _, text := range []string{"one ", "line\n", strings.Repeat(line, 1000), "prompt? "} {
			_, _ = io.WriteString(to, text)
		}
		_ = to.Close()
	}()
	var pieces writes
	var kept tail
	(&output{to: &pieces, lines: new(atomic.Uint64)}).pass(from, "", &kept)
	require.Equal(t, "one ", string(pieces[0]))
	for _, piece := range pieces[1 : len(pieces)-1] {
		require.True(t, bytes.HasSuffix(piece, []byte("\n")))
	}
	require.Equal(t, "prompt? ", string(pieces[len(pieces)-1]))
	require.Len(t, kept.lines, keptLines)
	require.Equal(t, "prompt? ", string(kept.lines[keptLines-1]))
	require.Equal(t, line, string(kept.lines[0]))
}

// writes records each write.
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
		(&output{to: io.Discard, lines: new(atomic.Uint64)}).pass(strings.NewReader(text), "", new(tail))
	}
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

const (
	// keptLines of each rank are shown again when it fails, unless they are to be seen:
	// no more than screenLines have come after them.
	keptLines   = 10
	screenLines = 24
	// longestLine is passed on in pieces if it is longer.
	longestLine = 64 << 10
)

// output passes on what the ranks write in whole lines, one at a time.
type output struct {
	mu sync.Mutex
	to io.Writer
	// text is room for a line with its label.
	text []byte
	// err is the error of the first write that failed, as on a full disk. Nothing is
	// written after it: what is there then is whole up to its end.
	err error
	// lines counts those of all outputs.
	lines *atomic.Uint64
}

// tail is the last lines of a rank.
type tail struct {
	mu    sync.Mutex
	lines [][]byte
	// at is the number of the last. lost tells that one of them could not be written.
	at   uint64
	lost bool
}

func (t *tail) add(line []byte, at uint64, lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.lost = max(t.at, at), t.lost || lost
	var into []byte
	if len(t.lines) == keptLines {
		into = t.lines[0]
		t.lines = t.lines[:copy(t.lines, t.lines[1:])]
	}
	t.lines = append(t.lines, append(into[:0], line...))
}

// unseen is the last lines if they are not to be seen among so many that were written.
func (t *tail) unseen(written uint64) [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.lost && written <= t.at+screenLines {
		return nil
	}
	return t.lines
}

// stream copies one stream of a rank to out, each line behind label, and keeps the
// last in kept. It returns at the end of the stream.
func stream(from io.Reader, out *output, label string, kept *tail) {
	buffer := make([]byte, 0, 4096)
	chunk := make([]byte, 32<<10)
	for {
		n, err := from.Read(chunk)
		buffer = append(buffer, chunk[:n]...)
		rest := buffer
		for {
			end := bytes.IndexByte(rest, '\n') + 1
			if end == 0 && len(rest) >= longestLine {
				end = longestLine
			}
			if end == 0 {
				break
			}
			out.line(label, rest[:end], kept)
			rest = rest[end:]
		}
		buffer = append(buffer[:0], rest...)
		if err != nil {
			if len(buffer) > 0 {
				out.line(label, append(buffer, '\n'), kept)
			}
			return
		}
	}
}

// line writes one line. Where that fails it is said once, and the ranks go on unheard.
func (o *output) line(label string, line []byte, kept *tail) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.text = append(append(o.text[:0], label...), line...)
		if _, o.err = o.to.Write(o.text); o.err != nil {
			fmt.Fprintf(os.Stderr, "rmarun: %v: what the ranks print there is lost from here on\n", o.err)
		}
	}
	kept.add(line, o.lines.Add(1), o.err != nil)
}

// failed tells whether something that ranks have printed is lost.
func (o *output) failed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err != nil
}

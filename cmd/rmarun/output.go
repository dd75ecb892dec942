package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onesided/rma/internal/tty"
)

const (
	// keptLines is the number of lines of each rank that are repeated when it fails, if more than screenLines lines
	// have come after them.
	keptLines   = 10
	screenLines = 24
	// chunkSize is the number of bytes that are read from a stream at a time.
	chunkSize = 32 << 10
	// A line longer than longestLine is passed on in pieces. With a label each piece is a line.
	longestLine = 64 << 10
	// restTime is how long the beginning of a line after a full chunk waits for the rest.
	restTime = 10 * time.Millisecond
)

// output passes on what the ranks write, a piece at a time.
type output struct {
	mu sync.Mutex
	to io.Writer
	// text is memory for lines with their labels.
	text []byte
	// failed is set when a write has failed, for example on a full disk. Nothing is written after that, so the output
	// is complete until then.
	failed atomic.Bool
	// lines counts the lines of all outputs.
	lines *atomic.Uint64
	// shown is set if to is a terminal, or a pipe that leads to one directly.
	shown bool
}

// newOutputs returns the outputs for the ranks' standard output and standard error. They are the same if both are the
// same terminal.
func newOutputs(stdout, stderr *os.File, lines *atomic.Uint64) (out, errout *output) {
	out = &output{to: stdout, lines: lines, shown: tty.Shows(stdout)}
	errout = &output{to: stderr, lines: lines, shown: tty.Shows(stderr)}
	first, err := stdout.Stat()
	second, e := stderr.Stat()
	if out.shown && errout.shown && err == nil && e == nil && os.SameFile(first, second) {
		return errout, errout
	}
	return out, errout
}

// tail holds the last lines of a rank.
type tail struct {
	mu    sync.Mutex
	lines [][]byte
	// at is the number of the last line. lost is set if one of them could not be written.
	at   uint64
	lost bool
}

// add adds text that a stream has written after begun, the beginning of its line. It returns the beginning of the
// next line.
func (t *tail) add(begun, text []byte, at uint64, lost bool) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at, t.lost = max(t.at, at), t.lost || lost
	for piece := range bytes.Lines(text) {
		begun = append(begun, piece...)
		if piece[len(piece)-1] == '\n' || len(begun) >= longestLine {
			t.keep(begun)
			begun = begun[:0]
		}
	}
	return begun
}

// end adds a line that has no end.
func (t *tail) end(begun []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(begun) > 0 {
		t.keep(begun)
	}
}

func (t *tail) keep(line []byte) {
	var into []byte
	if len(t.lines) == keptLines {
		into = t.lines[0]
		t.lines = t.lines[:copy(t.lines, t.lines[1:])]
	}
	t.lines = append(t.lines, append(into[:0], line...))
}

// unseen returns the last lines if more than screenLines have been written since, or if some are lost.
func (t *tail) unseen(written uint64) [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.lost && written <= t.at+screenLines {
		return nil
	}
	return t.lines
}

// pass copies one stream of a rank to o, and keeps its last lines in kept. It returns at the end of the stream.
//
// Without a label the bytes are passed on unchanged and at once, for example a prompt without a line end. Only the
// beginning of a line after a full chunk waits for the rest, at most for restTime. So one write of a rank is passed on
// in one piece. With a label a line is passed on, after the label, when it is complete or too long.
func (o *output) pass(from io.Reader, label string, kept *tail) {
	// held waits to be passed on. begun is the beginning of a line that has been passed on.
	var held, begun []byte
	chunk := make([]byte, chunkSize)
	limit, _ := from.(interface{ SetReadDeadline(at time.Time) error })
	limited, cut := false, false
	for {
		n, err := from.Read(chunk)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = nil
		}
		held = append(held, chunk[:n]...)
		lines, ready := bytes.LastIndexByte(held, '\n')+1, len(held)
		if err == nil && (label != "" || n == len(chunk)) && len(held)-lines < longestLine {
			ready = lines
		}
		if ready > 0 {
			at, lost := o.write(label, held[:ready], cut)
			cut = held[ready-1] != '\n'
			begun = kept.add(begun, held[:ready], at, lost)
			held = held[:copy(held, held[ready:])]
		}
		if err != nil {
			kept.end(begun)
			return
		}
		// Read would return the same error.
		switch {
		case limit == nil || label != "":
		case len(held) > 0:
			limited = true
			_ = limit.SetReadDeadline(time.Now().Add(restTime))
		case limited:
			limited = false
			_ = limit.SetReadDeadline(time.Time{})
		}
	}
}

// continued returns the label of the next piece of a line that was cut: a plus sign replaces its last space. It
// distinguishes what the rank wrote from what rmarun adds.
func continued(label string) string { return label[:len(label)-1] + "+" }

// write passes on a text, each line after label. It returns the number of lines of all outputs so far, and whether
// the text is lost. It reports once that output cannot be written, and then drops the output. With a label a text
// without a final line end gets one, because the next line may be another rank's. The next text of the stream is then
// the rest of a line that was cut.
func (o *output) write(label string, text []byte, cut bool) (at uint64, lost bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at = o.lines.Add(uint64(bytes.Count(text, []byte{'\n'})))
	if o.failed.Load() {
		return at, true
	}
	if label != "" {
		o.text = o.text[:0]
		for line := range bytes.Lines(text) {
			before := label
			if cut {
				before, cut = continued(label), false
			}
			o.text = append(append(o.text, before...), line...)
		}
		if o.text[len(o.text)-1] != '\n' {
			o.text = append(o.text, '\n')
		}
		text = o.text
	}
	if _, err := o.to.Write(text); err != nil {
		o.failed.Store(true)
		fmt.Fprintf(os.Stderr, "rmarun: %v: what the ranks print there is lost from here on\n", err)
	}
	return at, o.failed.Load()
}

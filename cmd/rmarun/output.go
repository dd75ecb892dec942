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
	// keptLines of each rank are shown again when it fails, unless they are to be seen:
	// no more than screenLines have come after them.
	keptLines   = 10
	screenLines = 24
	// chunkSize is what is read of a stream at a time.
	chunkSize = 32 << 10
	// longestLine is passed on in pieces if it is longer: with a label each is a line.
	longestLine = 64 << 10
	// restTime is how long the beginning of a line after a full chunk waits for the rest.
	restTime = 10 * time.Millisecond
)

// output passes on what the ranks write, a piece at a time.
type output struct {
	mu sync.Mutex
	to io.Writer
	// text is room for lines with their labels.
	text []byte
	// failed reports that a write has failed, as on a full disk. Nothing is written after it: what is there then is
	// whole up to its end.
	failed atomic.Bool
	// lines counts those of all outputs.
	lines *atomic.Uint64
	// shown: to is a terminal, or goes to one at once.
	shown bool
}

// newOutputs are those for what ranks write to standard output and to standard error: one, if both are the same terminal.
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

// tail is the last lines of a rank.
type tail struct {
	mu    sync.Mutex
	lines [][]byte
	// at is the number of the last. lost: one of them could not be written.
	at   uint64
	lost bool
}

// add takes what a stream has written after begun, the beginning of its line, and returns the beginning of the next.
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

// end takes the beginning of a line that is all of it.
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

// unseen is the last lines, if more than screenLines have been written since, or if some are lost.
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
// Without a label bytes are passed on as they are and at once: a prompt, say, which no line's end follows. Only the
// beginning of a line after a full chunk waits for the rest, for restTime, so that what a rank writes in one piece comes out
// in one. With a label lines are passed on when they are whole, each after it, or too long.
func (o *output) pass(from io.Reader, label string, kept *tail) {
	// held waits to be passed on, begun is a beginning of a line that was.
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
		// An error would come from Read, too.
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

// continued is the label of what goes on with a line that was cut: it has a plus sign in place of the space at its end.
// Without that what the rank wrote could not be told from what rmarun adds.
func continued(label string) string { return label[:len(label)-1] + "+" }

// write passes on a text, each line after label, and returns how many lines there have been in all outputs, and whether
// the text is lost. Where it cannot be written that is said once, and the ranks go on unheard. With a label a text whose
// last line has no end gets one, since another rank's may be next; the next text of the stream is then the rest of a line
// that was cut.
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

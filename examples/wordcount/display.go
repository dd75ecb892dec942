package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// A display writes lines to standard error, and one line that is rewritten while the job runs. It may be used by any
// goroutine.
type display struct {
	to io.Writer
	// terminal: the progress is a line that is rewritten. lines: it is a new line each time.
	terminal, lines bool

	mu sync.Mutex
	// shown is set while the line that is rewritten is on the screen.
	shown bool
}

const (
	// rewriteEvery and lineEvery are the intervals at which the progress is shown.
	rewriteEvery = 100 * time.Millisecond
	lineEvery    = time.Second
	// eraseLine is understood by every terminal in use.
	eraseLine = "\r\x1b[K"
)

func newDisplay(to io.Writer, terminal, lines bool) *display {
	return &display{to: to, terminal: terminal, lines: lines}
}

// line writes a line, in one write because other ranks write to the same file.
func (d *display) line(format string, arguments ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erase()
	_, _ = io.WriteString(d.to, fmt.Sprintf(format, arguments...)+"\n")
}

// clear removes the progress from the screen.
func (d *display) clear() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.erase()
}

func (d *display) erase() {
	if d.shown {
		_, _ = io.WriteString(d.to, eraseLine)
		d.shown = false
	}
}

// update shows the progress.
func (d *display) update(text string) {
	if d.lines {
		d.line("%s", text)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = io.WriteString(d.to, eraseLine+text)
	d.shown = true
}

// follow shows the state at intervals until stop is called, if the progress is to be shown. state is not called after
// stop.
func (d *display) follow(state func() (string, error)) (stop func()) {
	every := rewriteEvery
	switch {
	case d.lines:
		every = lineEvery
	case !d.terminal:
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-end:
				return
			case <-ticker.C:
			}
			text, err := state()
			if err != nil {
				// The rank meets the same error where it counts.
				return
			}
			d.update(text)
		}
	}()
	return func() {
		close(end)
		<-ended
		d.clear()
	}
}

package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress gives a function that shows a line on w in place of the last one, if w
// is a terminal, and one that removes it.
func progress(w io.Writer) (say func(string), done func()) {
	file, ok := w.(*os.File)
	if !ok {
		return func(string) {}, func() {}
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(string) {}, func() {}
	}
	return func(line string) { fmt.Fprintf(w, "\r\x1b[K%s", line) }, func() { fmt.Fprint(w, "\r\x1b[K") }
}

// timeLeft tells behind a line how long the rest of what began then takes, if it goes on as so far.
func timeLeft(began time.Time, done, all int) string {
	if done == 0 {
		return ""
	}
	left := time.Since(began) / time.Duration(done) * time.Duration(all-done)
	return fmt.Sprintf("; about %v left", left.Round(time.Second))
}
